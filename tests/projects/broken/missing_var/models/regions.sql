select order_id, amount, ordered_at
from {{ source('shop', 'orders') }}
where region = '{{ env_var('SHOP_REGION') }}'
