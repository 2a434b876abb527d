{{ config(sink='gold', options={'compresion': 'gzip'}) }} select * from {{ source('made', 'ticks') }}
