{{ config(sink='shared') }}
select id from {{ source('shop', 'orders') }}
