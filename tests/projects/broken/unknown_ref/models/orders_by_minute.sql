{{ config(sink='lake') }}
select /*+ WATERMARK(ordered_at, '10 minutes') */
    window.start as minute,
    sum(amount) as amount
from {{ ref('order') }}
group by window(ordered_at, '1 minute')
