{{ config(sink='lake') }}
select order_id
from {{ source('shop', 'orders') }} where amount betwen 1 and 3
