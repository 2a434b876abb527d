{{ config(sink='lake') }}
select distinct /*+ WATERMARK(ordered_at, '10 minutes') */
    window.start as minute,
    sum(amount) as amount
from {{ ref('orders') }}
group by window(ordered_at, '1 minute')
