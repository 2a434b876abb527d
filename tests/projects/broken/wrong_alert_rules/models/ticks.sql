{{ config(sink='lake', alerts={'restarts_over': -1}) }}
select value from {{ source('shop', 'ticks') }}
