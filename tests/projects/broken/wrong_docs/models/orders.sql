select order_id, amount, ordered_at
from {{ source('shop', 'orders') }}
