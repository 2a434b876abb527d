{{ config(sink='table') }}
select id from {{ source('lake', 'orders') }}
