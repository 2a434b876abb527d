{{ config(sink='nowhere') }}
select order_id, customer,
from {{ source('shop', 'orders') }}
