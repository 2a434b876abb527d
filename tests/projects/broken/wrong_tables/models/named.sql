{{ config(sink='lake') }}
select id as `order id` from {{ source('lake', 'orders') }}
