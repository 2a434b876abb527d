{{ config(sink='lake') }}
select id, customer from {{ ref('orders_once') }}
