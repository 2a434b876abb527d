{{ config(sink='nowhere') }}
select window, count(*) as orders
from {{ ref('late_orders') }}
group by window(ordered_at, '10 minutes')
