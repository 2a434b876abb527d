{{ config(sink='nowhere', output_mode='update') }}
select customer,
       count(distinct order_id) as orders
from {{ source('shop', 'orders') }}
group by customer
