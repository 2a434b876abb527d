{{ config(sink='file', unique_key='id', sequence_by=['tags', 'record']) }}
select id, map('kind', kind) as tags, named_struct('id', id) as record from {{ source('shop', 'orders') }}
