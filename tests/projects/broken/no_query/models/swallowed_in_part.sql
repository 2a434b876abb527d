-- orders
{%- set threshold = 100 %}
{#- the amount counts -#}
select *,
    amount > {{ threshold }} as is_large
from {{ source('shop', 'orders') }}
