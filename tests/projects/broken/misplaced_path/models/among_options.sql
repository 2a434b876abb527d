{{ config(sink='option') }}
select order_id from {{ source('shop', 'orders') }}
