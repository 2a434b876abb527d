{{ config(sink='lake') }}
select order_id, amount from {{ source('shop', 'orders') }}
wher amount > 3
