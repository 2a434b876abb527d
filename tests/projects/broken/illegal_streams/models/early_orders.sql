{{ config(sink='nowhere') }}
select order_id from {{ source('shop', 'orders') }} watermark ordered_at delay of interval -10 minutes
