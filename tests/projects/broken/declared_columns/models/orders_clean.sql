select order_id, amount as total, at from {{ source('shop', 'orders') }}
