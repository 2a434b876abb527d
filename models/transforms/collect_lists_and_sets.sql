{{ config(output_mode='complete') }}
select station, sort_array(collect_list(alarm.kind)) as alarms, sort_array(collect_set(alarm.level)) as levels
from (select station, explode(alarms) as alarm from {{ source('weather', 'readings') }})
group by station
order by station
