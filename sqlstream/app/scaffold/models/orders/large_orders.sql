{{ config(sink='screen') }}
select order_id, ordered_at, city, product, total
from {{ ref('orders_clean') }}
join {{ ref('shops') }} using (shop)
where total >= {{ var('large_order') }}
