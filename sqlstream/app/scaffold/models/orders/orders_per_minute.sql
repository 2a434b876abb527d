{{ config(sink='warehouse', output_mode='append') }}
-- The query writes a minute when an order arrives that is later than the end of that minute plus the delay.
select /*+ WATERMARK(ordered_at, '1 minute') */
    window.start as minute,
    shop,
    count(*) as orders,
    sum(total) as revenue
from {{ ref('orders_clean') }}
group by window(ordered_at, '1 minute'), shop
