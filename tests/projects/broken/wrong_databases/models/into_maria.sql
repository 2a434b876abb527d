{{ config(sink='maria', output_mode='update') }}
select id from {{ source('shop', 'orders') }}
