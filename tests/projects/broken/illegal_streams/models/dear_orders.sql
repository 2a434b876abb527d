{{ config(sink='nowhere') }}
select order_id
from {{ source('shop', 'orders') }}
where amount > 'a lot'
