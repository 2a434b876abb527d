{{ config(sink='lake', trigger='1 minute') }}
select timestamp from {{ source('shop', 'ticks') }}
