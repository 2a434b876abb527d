select /*+ WATERMARK(ordered_at) */ *
from {{ ref('orders') }}
