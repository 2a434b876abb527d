{{ config(sink="files", trigger="available_now") }}
select window.start as begun, kind, count(*) as orders, sum(amount) as amount, max_by(id, ts) as last_id
from {{ source("shop", "orders") }} watermark ts delay of interval 10 minutes
group by window(ts, "1 hour"), kind
