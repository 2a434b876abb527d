select order_id, 'paid as state
from {{ source('shop', 'orders') }}
