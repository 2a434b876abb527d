select /*+ WATERMARK(event_time, '10 minutes') */
    window.start as since, device, avg(amount) as average, count(*) as events
from {{ source('made', 'events') }}
group by window(event_time, '10 minutes'), device
