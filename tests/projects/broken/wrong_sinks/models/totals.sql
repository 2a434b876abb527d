{{ config(sink='totals', output_mode='complete') }}
select kind, count(*) as n from {{ source('shop', 'orders') }} group by kind
