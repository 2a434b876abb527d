{{ config(sink='totals', output_mode='update') }}
select kind, count(*) as orders from {{ source('shop', 'orders') }} group by kind
