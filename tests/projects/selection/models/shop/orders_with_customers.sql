select o.order_id, o.amount, o.ordered_at, o.customer_id, c.name as customer_name
from {{ ref('orders') }} o
join {{ ref('customers') }} c on o.customer_id = c.customer_id
