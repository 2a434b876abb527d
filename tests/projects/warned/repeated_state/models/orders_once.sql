{{ config(deduplicate=['id', 'ts']) }}
select /*+ WATERMARK(ts, '10 minutes') */ id, ts, kind, customer from {{ source('shop', 'orders') }}
