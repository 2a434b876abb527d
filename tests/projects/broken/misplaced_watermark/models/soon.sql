select /*+ WATERMARK(ordered_at, '10 minuts') */ *
from {{ ref('orders') }}
