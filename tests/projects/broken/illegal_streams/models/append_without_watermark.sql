{{ config(sink='nowhere') }}
select customer, count(*) as orders
from {{ source('shop', 'orders') }}
group by customer
