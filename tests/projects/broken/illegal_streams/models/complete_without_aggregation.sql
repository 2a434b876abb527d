{{ config(sink='nowhere', output_mode='complete') }}
select order_id from {{ source('shop', 'orders') }}
