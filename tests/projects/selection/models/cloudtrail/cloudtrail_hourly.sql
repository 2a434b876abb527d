{{ config(sink='warehouse', output_mode='append', trigger='1 minute', partition_by=['day', 'event_source']) }}
select /*+ WATERMARK(event_time, '10 minutes') */
       window.start as hour, cast(window.start as date) as day, event_source, count(*) as calls
from {{ ref('cloudtrail_events') }}
group by window(event_time, '1 hour'), event_source
