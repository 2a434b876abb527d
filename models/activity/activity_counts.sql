{{ config(sink='results', output_mode='complete') }}
select user, count(*) as reports, count_if(activity in ('walk', 'bike', 'stairs')) as moving
from {{ ref('activity_reports') }}
group by user
order by user
