{{ config(sink='file', unique_key='id', sequence_by='n', delete_when="body = 'd'", unavailable_columns='unavailable') }}
select row.*, op, unavailable, _kafka_offset
from {{ source('crm', 'customers') }}
