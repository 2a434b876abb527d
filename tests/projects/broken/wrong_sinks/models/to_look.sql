{{ config(sink='look') }}
select id, kind from {{ source('shop', 'orders') }}
