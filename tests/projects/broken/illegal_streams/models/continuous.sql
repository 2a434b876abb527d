{{ config(sink='nowhere', output_mode='update', trigger={'continuous': '1 second'}) }}
select customer, count(*) as orders
from {{ source('shop', 'orders') }}
group by customer
