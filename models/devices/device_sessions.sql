{{ config(sink='warehouse', output_mode='append') }}
select /*+ WATERMARK(event_time, '10 minutes') */
    session_window.start as since,
    session_window.end as until,
    device,
    count(*) as signals
from {{ source('iot', 'signals') }}
group by session_window(event_time, '10 minutes'), device
