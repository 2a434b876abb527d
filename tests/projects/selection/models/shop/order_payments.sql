{{ config(sink='warehouse', output_mode='append', trigger='available_now') }}
select /*+ WATERMARK(p.paid_at, '20 minutes') */ o.order_id, o.amount, o.ordered_at, p.paid, p.paid_at
from {{ ref('orders') }} o
join {{ source('shop', 'payments') }} p
  on o.order_id = p.order_id
 and p.paid_at between o.ordered_at and o.ordered_at + interval 1 hour
