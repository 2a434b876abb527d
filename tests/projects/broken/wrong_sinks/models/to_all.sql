{{ config(
    sink=['screen', 'service'],
    fan_out='shared') }}
select id, kind from {{ source('shop', 'orders') }}
