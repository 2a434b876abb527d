{{ config(sink='nowhere') }}
select order_id
from {{ source('shop', 'orders') }}
limit '10'
