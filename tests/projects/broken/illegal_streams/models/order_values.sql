{{ config(sink='nowhere') }}
select o.order_id, v.x
from {{ source('shop', 'orders') }} o, lateral (values (o.amount), (0)) as v(x)
