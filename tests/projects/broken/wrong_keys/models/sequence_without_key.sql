{{ config(sink='file', sequence_by='changed') }}
select id, kind from {{ source('shop', 'orders') }}
