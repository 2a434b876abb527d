{{ config(sink='lake', unique_key='id', sequence_by='id') }}
select id, kind from {{ source('shop', 'orders') }}
