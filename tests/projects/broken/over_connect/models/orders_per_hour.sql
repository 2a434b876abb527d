{{ config(sink='screen', late_rows='quarantine', quarantine_sink='lake', output_mode='append') }}
select /*+ WATERMARK(ts, '10 minutes') */ window.start as hour, sum(amount) as amount
from {{ source('shop', 'orders') }}
group by window(ts, '1 hour')
