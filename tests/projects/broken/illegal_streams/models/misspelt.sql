{{ config(sink='nowhere') }}
select order_id,
       amout,
       place.town,
       uper(customer) as customer
from {{ source('shop', 'orders') }}
