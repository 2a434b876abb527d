{{ config(sink='screen') }}
select * from {{ source('shop', 'regions') }}
