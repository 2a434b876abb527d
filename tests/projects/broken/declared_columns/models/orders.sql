{{ config(sink='lake') }} select * from {{ ref('orders_clean') }}
