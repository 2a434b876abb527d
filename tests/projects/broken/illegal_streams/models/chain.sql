{{ config(sink='nowhere') }}
with recursive chain(n) as (
    select order_id from {{ source('shop', 'orders') }} union all select n + 1 from chain where n < 3
)
select n from chain
