{{ config(sink='nowhere') }}
select o.order_id, c.name
from {{ source('shop', 'orders') }} o
join {{ source('shop', 'customers') }} c on o.order_id = c.customer
