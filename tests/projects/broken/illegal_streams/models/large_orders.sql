{{ config(sink='nowhere') }}
select o.order_id, large.amount
from {{ source('shop', 'orders') }} o
left join lateral (select o.amount where o.amount > 100) large on true
