{{ config(sink='nowhere', output_mode='update') }}
select window.start, count(*) as orders
from {{ source('shop', 'orders') }}
group by window(ordered_at, interval 10 minutes)
