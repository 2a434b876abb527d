{{ config(sink='nowhere') }}
select order_id
from {{ source('shop', 'orders') }}
where place = 'Berlin'
