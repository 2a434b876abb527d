{% macro latest() %}
select * from {{ ref('order') }}
{% endmacro %}
