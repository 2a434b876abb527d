{{ config(sink='nowhere', output_mode='update') }}
select customer, count(*) as orders
from {{ source('shop', 'orders') }}
group by 3
