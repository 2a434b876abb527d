{{ config(sink='file', unique_key='id', sequence_by='_kafka_offset', unavailable_columns='unavailable') }}
select c.row.id, c.row.body, c.unavailable, c._kafka_offset
from {{ source('crm', 'customers') }} c join {{ source('shop', 'orders') }} o on c.row.id = o.id
