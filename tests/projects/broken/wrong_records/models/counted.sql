{{ config(sink='counts', output_mode='update') }}
-- sqlstream: allow unbounded-state because there are few cities
select city, count(*) as orders from {{ source('shop', 'orders') }} group by city
