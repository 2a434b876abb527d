select order_id, amount, ordered_at
from {{ source('shop', 'orders') }}
where secret = '{{ env_var('SQLSTREAM_SECRET_PASSWORD') }}'
