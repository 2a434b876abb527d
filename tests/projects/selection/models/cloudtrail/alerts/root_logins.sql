{{ config(meta={'severity': 3, 'pager': true}) }}
select event_time, user_name, source_ip
from {{ ref('cloudtrail_events') }}
where event_name = 'ConsoleLogin' and user_type = 'Root'
