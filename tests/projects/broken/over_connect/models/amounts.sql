{{ config(sink=['lake', 'screen'], fan_out='shared') }}
select kind, amount from {{ source('shop', 'orders') }}
