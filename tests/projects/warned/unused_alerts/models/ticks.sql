{{ config(sink='lake') }}
select value from {{ source('shop', 'ticks') }}
