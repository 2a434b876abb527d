{{ config(sink='lake', materialized='stored') }}
select /*+ WATERMARK(ts, '10 minutes') */ id, ts, kind, amount from {{ source('shop', 'orders') }}
