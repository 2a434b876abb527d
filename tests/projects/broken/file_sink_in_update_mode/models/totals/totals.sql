{{ config(sink='lake') }}
select count(*) as orders from {{ ref('orders') }}
