select date(ordered_at) as day, order_id, amount from {{ source('shop', 'orders') }}
