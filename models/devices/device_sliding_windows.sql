{{ config(sink='warehouse', output_mode='append') }}
select /*+ WATERMARK(event_time, '10 minutes') */
    window.start as since,
    window.end as until,
    device,
    avg(signal) as average_signal,
    count(*) as signals
from {{ source('iot', 'signals') }}
group by window(event_time, '10 minutes', '5 minutes'), device
