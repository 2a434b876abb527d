{{ config(sink='file', unique_key='id', sequence_by='_kafka_offset', delete_when="op = 'd'", unavailable_columns='unavailable') }}
select row.id, row.body as text, to_json(row.more) as more, op, unavailable, _kafka_offset
from {{ source('crm', 'customers') }} where row.body > 'a'
