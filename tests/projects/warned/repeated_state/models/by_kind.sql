{{ config(sink='lake') }}
select id, kind from {{ ref('orders_once') }}
