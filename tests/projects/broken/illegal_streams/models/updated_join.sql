{{ config(sink='nowhere', output_mode='update') }}
select /*+ WATERMARK(o.ordered_at, '1 hour'), WATERMARK(p.paid_at, '1 hour') */ o.order_id, p.paid
from {{ source('shop', 'orders') }} o
left join {{ source('shop', 'payments') }} p
  on p.order_id = o.order_id and p.paid_at between o.ordered_at and o.ordered_at + interval 1 hour
