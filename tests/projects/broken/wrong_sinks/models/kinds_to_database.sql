{{ config(sink='database') }}
select kind from {{ source('shop', 'kinds') }}
