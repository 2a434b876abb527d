select /*+ WATERMARK(ordered_at, '10 minutes') */ order_id, customer_id, amount, ordered_at
from {{ source('shop', 'orders') }}
where amount > 0
