{{ config(sink='results', output_mode='complete') }}
-- sqlstream: allow unbounded-state
select customer as user, count(*) as orders from {{ source('shop', 'orders') }} group by customer
