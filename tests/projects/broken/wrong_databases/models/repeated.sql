{{ config(sink='nowhere') }}
select id, kind as ID from {{ source('shop', 'orders') }}
