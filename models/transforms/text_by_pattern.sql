{% set wind = "r'^(\\w{3}) \\d+Z (\\d{3})(\\d{2})(?:G(\\d{2}))?KT'" %}
{% macro part(number) %}nullif(regexp_extract(value, {{ wind }}, {{ number }}), ''){% endmacro %}
select
    {{ part(1) }} as airport,
    cast({{ part(2) }} as int) as degrees,
    cast({{ part(3) }} as int) as knots,
    cast({{ part(4) }} as int) as gusts
from {{ source('weather', 'reports') }}
