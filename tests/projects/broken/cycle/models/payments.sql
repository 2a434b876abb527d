select p.*
from {{ source('shop', 'orders') }} p
join {{ ref('orders') }} o using (order_id)
