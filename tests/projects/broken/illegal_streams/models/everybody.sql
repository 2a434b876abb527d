{{ config(sink='nowhere') }}
select customer from {{ source('shop', 'orders') }}
union all
select customer from {{ source('shop', 'customers') }}
