select * from {{ ref('paid_orders') }}
