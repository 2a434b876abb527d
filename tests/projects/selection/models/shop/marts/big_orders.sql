-- A diamond: customers reaches this model by two ways.
{{ config(sink='warehouse', output_mode='append', partition_by=['region_name'], options={'compression': 'zstd'}) }}
select o.order_id, o.amount, o.ordered_at, o.customer_name, r.region_name
from {{ ref('orders_with_customers') }} o
join {{ ref('customer_regions') }} r on o.customer_id = r.customer_id
where o.amount > 1000
