{{ config(sink='nowhere') }}
select order_id, ordered_at from {{ source('shop', 'orders') }}
union all
select order_id, paid from {{ source('shop', 'payments') }}
