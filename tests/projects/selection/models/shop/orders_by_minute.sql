{{ config(sink='warehouse', output_mode='append', trigger='10 seconds') }}
select window.start as minute, cast(window.start as date) as day, count(*) as orders, sum(amount) as amount
from {{ ref('orders') }}
group by window(ordered_at, '1 minute')
