{{ config(sink='nowhere') }}
select o.order_id, p.paid
from {{ source('shop', 'orders') }} o
left join {{ source('shop', 'payments') }} p on p.order_id = o.order_id
