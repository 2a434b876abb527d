select /*+ WATERMARK(ordered_at, '1 hour') */
       order_id,
       ordered_at + interval 1 hour as ordered_at
from {{ source('shop', 'orders') }}
