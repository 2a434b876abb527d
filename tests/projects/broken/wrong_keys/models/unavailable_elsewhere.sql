{{ config(sink='file', unique_key='id', sequence_by='_kafka_offset', delete_when="op = 'd'", unavailable_columns='op') }}
select row.*, op, unavailable, _kafka_offset
from {{ source('crm', 'customers') }}
