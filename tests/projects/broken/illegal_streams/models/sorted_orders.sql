{{ config(sink='nowhere') }}
select order_id, amount
from {{ source('shop', 'orders') }}
order by amount desc
