{{ config(sink='nowhere') }}
select o.order_id, p.paid
from {{ source('shop', 'orders') }} o
join {{ source('shop', 'payments') }} p on p.paid_at > o.ordered_at
