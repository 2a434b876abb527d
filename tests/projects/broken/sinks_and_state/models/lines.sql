{{ config(sink='lines') }}
select order_id from {{ source('shop', 'orders') }}
