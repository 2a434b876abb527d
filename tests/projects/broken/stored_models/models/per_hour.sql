{{ config(sink='lake') }}
select window.start as hour, count(*) as n
from {{ ref('orders') }}
group by window(ts, '1 hour')
