{{ config(meta={'severity': 2, 'pager': false}) }}
select /*+ WATERMARK(event_time, '10 minutes') */
       window.start as window_start, user_name, count(*) as failures
from {{ ref('cloudtrail_events') }}
where event_name = 'ConsoleLogin' and error_code is not null
group by window(event_time, '5 minutes'), user_name
