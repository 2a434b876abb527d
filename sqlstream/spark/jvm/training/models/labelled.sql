{{ config(sink="screen", trigger="available_now", output_mode="update") }}
select o.kind, k.label, avg(o.amount) as amount
from {{ source("shop", "orders") }} o left join {{ source("shop", "kinds") }} k on o.kind = k.kind
group by o.kind, k.label
