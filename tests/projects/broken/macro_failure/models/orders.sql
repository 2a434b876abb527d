select
  order_id,
  {{ in_euro('amount') }}
from {{ source('shop', 'orders') }}
