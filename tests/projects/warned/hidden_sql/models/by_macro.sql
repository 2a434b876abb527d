{{ config(sink='nowhere') }}
select {{ columns() }} as since
from {{ source('shop', 'orders') }}
