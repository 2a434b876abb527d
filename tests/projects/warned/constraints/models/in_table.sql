{{ config(sink='file', unique_key='order_id', output_mode='update') }}
select order_id, amount from {{ source('shop', 'orders') }}
