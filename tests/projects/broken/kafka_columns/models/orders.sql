{{ config(sink='lake') }}
select ident, value, _kafka_key + 1 as key, _kafka_ofset from {{ source('bus', 'good') }}
