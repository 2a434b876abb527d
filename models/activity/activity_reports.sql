{{ config(deduplicate=['user', 'event_time']) }}
select /*+ WATERMARK(event_time, '10 minutes') */ user, event_time, activity
from {{ source('phones', 'reports') }}
