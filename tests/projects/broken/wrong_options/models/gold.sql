{{ config(sink='gold') }} select * from {{ source('made', 'ticks') }}
