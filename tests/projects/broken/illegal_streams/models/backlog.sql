{{ config(sink='nowhere') }}
select window, count(*) as visits
from {{ source('shop', 'backlog') }} WATERMARK at DELAY OF INTERVAL 10 MINUTES
group by window(at, '1 hour')
