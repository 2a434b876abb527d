{{ config(sink='archive', output_mode='append', options={'compression': 'gzip'}) }}
select event_time, event_name, user_name
from {{ ref('cloudtrail_events') }}
where event_source = 'ec2.amazonaws.com'
