{{ config(sink='results', output_mode='update') }}
select customer, sum(amount) as total
from {{ source('shop', 'orders') }}
group by customer
