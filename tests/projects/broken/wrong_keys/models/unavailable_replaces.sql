{{ config(sink='file', unique_key='id', sequence_by='_kafka_offset') }}
select row.*, unavailable, _kafka_offset
from {{ source('crm', 'customers') }}
