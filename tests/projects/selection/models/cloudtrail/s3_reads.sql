select event_time, user_name, source_ip
from {{ ref('cloudtrail_events') }}
where event_source = 's3.amazonaws.com' and event_name like 'Get%'
