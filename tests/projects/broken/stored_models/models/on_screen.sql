{{ config(sink='screen', materialized='stored') }}
select id, kind from {{ source('shop', 'orders') }}
