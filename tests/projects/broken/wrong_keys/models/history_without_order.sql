{{ config(sink='file', unique_key='id', history=true, sequence_by=['id', 'kind']) }}
select id, kind from {{ source('shop', 'orders') }}
