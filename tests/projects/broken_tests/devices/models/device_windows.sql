{{ config(sink='warehouse', output_mode='append') }}
select /*+ WATERMARK(event_time, '10 minutes') */ window.start as since, device, avg(signal) as average_signal
from {{ source('iot', 'signals') }}
group by window(event_time, '10 minutes'), device
