{{ config(sink='lake', unique_key='id') }}
select * from {{ source('shop', 'orders') }}
