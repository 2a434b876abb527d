{{ config(sink='warehouse', output_mode='append') }}
-- A minute is emitted when the watermark passes its end: an order at least one minute (the delay) newer has arrived.
select /*+ WATERMARK(ordered_at, '1 minute') */
    window.start as minute,
    shop,
    count(*) as orders,
    sum(total) as revenue
from {{ ref('orders_clean') }}
group by window(ordered_at, '1 minute'), shop
