{{ config(sink='nowhere') }}
select order_id, split(customer) as names
from {{ source('shop', 'orders') }}
