{{ config(sink='same') }}
select order_id from {{ source('shop', 'orders') }}
