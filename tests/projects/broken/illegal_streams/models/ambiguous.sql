{{ config(sink='nowhere') }}
select order_id, paid
from {{ source('shop', 'orders') }} o
join {{ source('shop', 'payments') }} p on o.order_id = p.order_id
