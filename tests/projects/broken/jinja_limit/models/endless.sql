{% macro again(n) %}{{ again(n + 1) }}{% endmacro %}
select {{ again(0) }}
