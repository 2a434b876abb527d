{{ config(sink='file', unique_key='id', sequence_by='at', history=true, track_columns='kin') }}
select id, id as at, kind, is_gone as is_current from {{ source('shop', 'orders') }}
