{{ config(sink='nowhere') }}
select /*+ WATERMARK(ordered_at, '10 minutes') */ window.start as hour, count(*) as orders
from {{ source('shop', 'orders') }}
where ordered_at < now() + interval 1 hour
group by window(ordered_at, '1 hour')
