{{ config(sink='file', unique_key='id', sequence_by='_kafka_offset', delete_when="op = 'd'", unavailable_columns='unavailable') }}
select row.id, after.body, row.n + 1 as m, op, unavailable, _kafka_offset
from {{ source('crm', 'customers') }} where row.n > 0
