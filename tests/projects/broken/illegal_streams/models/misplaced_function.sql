{{ config(sink='nowhere', output_mode='update') }}
select customer, sum(amount) as total
from {{ source('shop', 'orders') }}
where sum(amount) > 100
group by customer
