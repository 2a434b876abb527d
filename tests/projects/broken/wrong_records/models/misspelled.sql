{{ config(sink='totals') }}
select city, id, id as ID from {{ source('shop', 'orders') }}
