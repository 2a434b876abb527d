{{ config(sink='nowhere') }}
select window(at, '1 minute') as minute, at, count(*) as visits
from {{ source('shop', 'visits') }}
group by window(at, '1 minute'), at
