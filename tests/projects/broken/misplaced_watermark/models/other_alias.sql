select /*+ WATERMARK(orders.ordered_at, '10 minutes') */ *
from {{ ref('orders') }} o
