{{ config(sink='nowhere', output_mode='update') }}
select order_id from {{ source('shop', 'orders') }}
limit 10
