{{ config(sink='lake') }}
select id, amount from {{ source('shop', 'orders') }}
