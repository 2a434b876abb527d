{{ config(sink='database') }}
select id, kind from {{ source('shop', 'orders') }}
