{{ config(sink='lake') }}
select id from {{ source('bus', 'proto') }}
