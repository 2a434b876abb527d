{{ config(sink='nowhere') }}
select /*+ WATERMARK(at, '1 hour') */ customer, at
from {{ source('shop', 'visits') }}
