{{ config(sink='lake') }} select * from {{ source('shop', 'ticks') }}
