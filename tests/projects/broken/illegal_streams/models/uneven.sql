{{ config(sink='nowhere') }}
select order_id, amount from {{ source('shop', 'orders') }}
union all
select order_id from {{ source('shop', 'payments') }}
