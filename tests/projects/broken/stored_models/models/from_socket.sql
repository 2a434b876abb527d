{{ config(sink='lake', materialized='stored') }}
select value from {{ source('shop', 'lines') }}
