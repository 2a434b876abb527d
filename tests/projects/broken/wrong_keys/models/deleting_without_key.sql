{{ config(sink='screen', delete_when='is_gone') }}
select id, is_gone from {{ source('shop', 'orders') }}
