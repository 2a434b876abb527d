{{ config(materialized='incremental', unique_key='id', on_schema_change='fail') }}
select id from {{ source('shop', 'orders') }}
