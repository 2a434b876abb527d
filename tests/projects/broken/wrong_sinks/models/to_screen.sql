{{ config(sink='screen') }}
select id, kind from {{ source('shop', 'orders') }}
