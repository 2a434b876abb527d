{{ config(sink='nowhere') }}
select order_id from {{ source('shop', 'orders') }} timestamp as of '2024-01-01'
