{{ config(sink='warehouse', output_mode='append') }}
select /*+ WATERMARK(e.event_time, '10 minutes') */
    window.start as hour,
    coalesce(c.city, 'unknown') as city,
    count_if(e.action = 'open') as opens,
    count_if(e.action = 'close') as closes,
    count_if(c.plan = 'yearly') as of_yearly_customers
from {{ ref('locker_events') }} as e
left join {{ source('lockers', 'customers') }} as c on e.customer_id = c.customer_id
group by window(e.event_time, '1 hour'), coalesce(c.city, 'unknown')
