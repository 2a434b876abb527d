{{ config(sink='lake') }}
select note, order_id from {{ source('shop', 'orders') }}
