{{ config(sink='screen', output_mode='update', unique_key='id', delete_when='is_gone') }}
select id, is_gone from {{ source('shop', 'orders') }}
