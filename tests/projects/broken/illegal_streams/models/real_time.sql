{{ config(sink='nowhere', trigger={'real_time': '5 minutes'}) }}
select order_id
from {{ source('shop', 'orders') }}
