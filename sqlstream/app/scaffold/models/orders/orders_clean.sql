-- It names no sink, so it is a view for other models to read.
select
    order_id,
    ordered_at,
    shop,
    product,
    {{ order_total('quantity', 'unit_price') }} as total
from {{ source('shop', 'orders') }}
where quantity > 0
