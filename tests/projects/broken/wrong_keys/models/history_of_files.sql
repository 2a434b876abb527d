{{ config(sink='lake', unique_key='id', sequence_by='id', history=true) }}
select id, kind from {{ source('shop', 'orders') }}
