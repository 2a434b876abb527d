{{ config(sink='lake', materialized='stored', output_mode='complete') }}
select kind, sum(amount) as total from {{ ref('orders') }} group by kind
