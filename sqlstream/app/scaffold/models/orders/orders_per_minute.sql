{{ config(sink='warehouse', output_mode='append') }}
-- A minute is written once no order of it can still arrive: when one comes that is more than the delay later.
select /*+ WATERMARK(ordered_at, '1 minute') */
    window.start as minute,
    shop,
    count(*) as orders,
    sum(total) as revenue
from {{ ref('orders_clean') }}
group by window(ordered_at, '1 minute'), shop
