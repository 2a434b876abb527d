{# What an order is worth, as a SQL expression over the names of two columns. #}
{% macro order_total(quantity, unit_price) -%}
cast({{ quantity }} * {{ unit_price }} as decimal(12, 2))
{%- endmacro %}
