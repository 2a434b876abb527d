{{ config(sink='oracle') }}
select id from {{ source('shop', 'orders') }}
