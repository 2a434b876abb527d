{{ config(sink='lake') }}
select id from {{ source('shop', 'orders') }}
