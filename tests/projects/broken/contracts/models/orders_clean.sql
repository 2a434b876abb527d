{{ config(sink='lake') }}
select
  order_id,
  amount as total,
  at,
  note
from {{ source('shop', 'orders') }}
