{{ config(sink='out') }}
select * from {{ ref('payments') }}
