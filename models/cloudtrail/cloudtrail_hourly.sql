{{ config(sink='warehouse', output_mode='append') }}
select /*+ WATERMARK(event_time, '10 minutes') */
    window.start as hour,
    event_source,
    count(*) as calls,
    count(error_code) as errors
from {{ ref('cloudtrail_in_order') }}
group by window(event_time, '1 hour'), event_source
