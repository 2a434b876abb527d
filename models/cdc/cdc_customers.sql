{{ config(sink='tables', unique_key='id', sequence_by='_kafka_offset', delete_when="op = 'd'") }}
select row.*, op, _kafka_offset from {{ source('crm', 'customers') }}
