{{ config(sink='warehouse', output_mode='append') }}
select /*+ WATERMARK(event_time, '10 minutes') */
    window.start as hour,
    action,
    count(*) as events
from {{ ref('locker_events') }}
group by window(event_time, '1 hour'), action
