{{ config(sink='nowhere') }}
select /*+ WATERMARK(customer, '1 hour') */ customer
from {{ source('shop', 'orders') }}
