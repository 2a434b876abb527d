{{ config(materialized='stored') }}
select id, kind from {{ source('shop', 'orders') }}
