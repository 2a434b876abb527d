{{ config(sink='warehouse', output_mode='append', trigger='1 minute', tags=['core']) }}
select window.start as hour, count(*) as orders, sum(amount) as amount
from {{ ref('orders') }}
group by window(ordered_at, '1 hour')
