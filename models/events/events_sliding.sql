{{ config(sink='warehouse', output_mode='append') }}
select /*+ WATERMARK(event_time, '10 minutes') */
    window.start as since,
    window.end as until,
    count_if(action = 'open') as opens,
    count_if(action = 'close') as closes
from {{ ref('locker_events') }}
group by window(event_time, '10 minutes', '5 minutes')
