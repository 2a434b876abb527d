{{ config(sink='lake') }}
select order_id from {{ source('shop', 'orders') }}
