{{ exceptions.warn('orders moves to the folder shop soon') }}
select order_id, amount, ordered_at
from {{ source('shop', 'orders') }}
