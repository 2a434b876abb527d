{{ config(sink='warehouse') }}
select id, amount from {{ source('shop', 'orders') }}
