{{ config(sink='warehouse', output_mode='append') }}
select /*+ WATERMARK(o.event_time, '10 minutes'), WATERMARK(c.event_time, '10 minutes') */
    o.event_time as opened_at,
    o.customer_id
from {{ ref('locker_events') }} as o
left join {{ ref('locker_events') }} as c
    on
        c.customer_id = o.customer_id
        and c.action = 'close'
        and c.event_time between o.event_time and o.event_time + interval 15 minutes
where o.action = 'open' and c.action is null
