{{ config(deduplicate=['user', 'event_time']) }}
-- sqlstream: allow repeated-state because two queries keep ten minutes of reports each
select /*+ WATERMARK(event_time, '10 minutes') */ user, event_time, activity
from {{ source('phones', 'reports') }}
