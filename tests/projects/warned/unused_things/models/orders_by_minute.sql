{{ config(sink='results', output_mode='append') }}
-- sqlstream: allow unbounded-state because there are only three shops
select /*+ WATERMARK(ordered_at, '10 minutes') */ window.start as minute, count(*) as orders
from {{ source('shop', 'orders') }}
group by window(ordered_at, '1 minute')
