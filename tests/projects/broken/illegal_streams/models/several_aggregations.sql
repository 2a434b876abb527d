{{ config(sink='nowhere', output_mode='update') }}
select max(orders) as most
from (select customer, count(*) as orders from {{ source('shop', 'orders') }} group by customer)
