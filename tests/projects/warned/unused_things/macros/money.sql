{% macro cents(amount) %}cast({{ amount }} * 100 as bigint){% endmacro %}
