{{ config(sink='nowhere') }}
select /*+ WATERMARK(ordered_at, '10 minutes') */ window, customer, count(*) as orders
from {{ source('shop', 'orders') }}
group by rollup(window(ordered_at, '10 minutes'), customer)
