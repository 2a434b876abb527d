{{ config(sink='screen', output_mode='update') }}
select window.start as hour, region_name, sum(amount) as amount
from {{ ref('big_orders') }}
group by window(ordered_at, '1 hour'), region_name
