{{ config(sink='totals') }}
select id, place from {{ source('shop', 'orders') }}
