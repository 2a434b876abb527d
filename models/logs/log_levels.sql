{{ config(sink='results', output_mode='complete') }}
select service, format, level, count(*) as lines
from {{ ref('service_logs') }}
group by service, format, level
order by service, format, level
