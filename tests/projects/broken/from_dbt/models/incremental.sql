{{ config(materialized='incremental', unique_key='order_id') }}
select * from {{ source('shop', 'orders') }}
