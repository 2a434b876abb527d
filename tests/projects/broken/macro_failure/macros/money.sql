{% macro cents(column, places) %}
  round({{ column }} * {{ 10 ** places }})
{% endmacro %}

{% macro in_euro(column) %}
  {{ cents(column, 'two') }} as {{ column }}
{% endmacro %}
