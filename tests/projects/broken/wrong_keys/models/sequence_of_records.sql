{{ config(sink='screen', output_mode='update', unique_key='id', sequence_by='id') }}
select id, kind from {{ source('shop', 'orders') }}
