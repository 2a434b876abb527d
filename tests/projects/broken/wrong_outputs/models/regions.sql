{{ config(sink='screen', output_mode='complete') }}
select * from {{ source('shop', 'regions') }}
