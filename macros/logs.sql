{#- Part 1 to 5 of a Log4j line: its time, level, thread, logger and message; null if the text is not a Log4j line. -#}
{% macro log4j_part(line, part) -%}
nullif(regexp_extract({{ line }}, r'^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) +(\w+) +\[(.*?)\] (\S+) - (.*)$', {{ part }}), '')
{%- endmacro %}
