{{ config(sink='raw') }}
select id from {{ source('shop', 'orders') }}
