select /*+ WATERMAK(ordered_at, '10 minutes') */ *
from {{ ref('orders') }}
