{{ config(sink='nowhere', output_mode='update') }}
select customer, place.city, count(*) as orders
from {{ source('shop', 'orders') }}
group by customer
