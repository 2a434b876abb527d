{{ config(sink='lake') }}
select value, timestamp from {{ source('shop', 'ticks') }}
