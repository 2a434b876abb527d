select /*+ WATERMARK(ordered_at, '10 minutes') */ *
from {{ ref('orders') }} o
join {{ source('shop', 'orders') }} p on o.order_id = p.order_id
