{# The total of an order: a SQL expression over two column names. #}
{% macro order_total(quantity, unit_price) -%}
cast({{ quantity }} * {{ unit_price }} as decimal(12, 2))
{%- endmacro %}
