select /* + WATERMARK(ordered_at, '10 minutes') */ count(*) as orders
from orders
