{{ config(sink='lake', output_mode='update') }}
select kind, count(*) as orders from {{ source('lake', 'orders') }} group by kind
