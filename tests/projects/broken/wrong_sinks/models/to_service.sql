{{ config(sink='service', output_mode='update') }}
select id, kind from {{ source('shop', 'orders') }}
