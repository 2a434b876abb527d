{{ config(sink='tables', output_mode='update', unique_key='customer_id') }}
-- sqlstream: allow unbounded-state because there are few customers
select
    customer_id,
    count_if(action = 'open') as opens,
    count_if(action = 'close') as closes,
    max(event_time) as last_event
from {{ ref('locker_events') }}
group by customer_id
