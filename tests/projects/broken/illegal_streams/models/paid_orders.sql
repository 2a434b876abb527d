{{ config(sink='nowhere') }}
select order_id from {{ source('shop', 'orders') }}
where order_id in (select order_id from {{ source('shop', 'payments') }})
