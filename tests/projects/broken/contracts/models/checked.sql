{{ config(sink='lake') }}
select order_id, cast(amount as double) as amount from {{ source('shop', 'orders') }}
