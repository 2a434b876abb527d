{{ config(sink='nowhere') }}
select order_id
from {{ source('shop', 'orders') }} tablesample (10 percent)
