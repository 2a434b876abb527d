{{ config(sink='file', unique_key='id', sequence_by='_kafka_offset', delete_when="op = 'd'", unavailable_columns='unavailable', history=true) }}
select row.*, op, unavailable, _kafka_offset
from {{ source('crm', 'customers') }}
