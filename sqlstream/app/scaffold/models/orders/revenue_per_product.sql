{{ config(sink='tables', output_mode='update', unique_key='product') }}
-- sqlstream: allow unbounded-state because there are few products
-- Each batch writes the products with new orders, and `unique_key` replaces their earlier rows.
select
    product,
    count(*) as orders,
    cast(sum(total) as decimal(14, 2)) as revenue
from {{ ref('orders_clean') }}
group by product
