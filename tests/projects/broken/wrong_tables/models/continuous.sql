{{ config(sink='lake', trigger={'continuous': '1 second'}) }}
select id from {{ source('lake', 'orders') }}
