-- A self-join: one parent, read twice.
{{ config(sink='archive', output_mode='append') }}
select a.customer_id, a.order_id as first_order, b.order_id as next_order, b.ordered_at
from {{ ref('orders') }} a
join {{ ref('orders') }} b
  on a.customer_id = b.customer_id
 and b.ordered_at > a.ordered_at
 and b.ordered_at <= a.ordered_at + interval 1 hour
