{{ config(sink='nowhere') }}
select order_id, customer
from (
  select *, row_number() over (partition by customer order by ordered_at desc) as nth
  from {{ source('shop', 'orders') }}
)
where nth = 1
