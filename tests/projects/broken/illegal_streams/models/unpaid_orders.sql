{{ config(sink='nowhere') }}
select o.order_id
from {{ source('shop', 'orders') }} o
left anti join {{ source('shop', 'payments') }} p on p.order_id = o.order_id
