select /*+ WATERMARK(to_timestamp(ordered_at), '10 minutes') */ *
from {{ ref('orders') }}
