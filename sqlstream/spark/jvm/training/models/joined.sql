{{ config(sink="results", trigger="available_now") }}
select a.id, b.ts
from {{ source("shop", "orders") }} watermark ts delay of interval 10 minutes as a
join {{ source("shop", "orders") }} watermark ts delay of interval 10 minutes as b
on a.id = b.id and b.ts between a.ts and a.ts + interval 5 minutes
