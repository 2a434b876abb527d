{{ config(sink='nowhere') }}
select order_id -- the key
from {{ source('shop', 'orders') }} -- all orders
{%- if true %} where order_id > 10
{%- endif %}
