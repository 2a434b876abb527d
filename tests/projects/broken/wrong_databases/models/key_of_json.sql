{{ config(sink='maria', unique_key='parts') }}
select array(id) as parts from {{ source('shop', 'orders') }}
