{{ config(sink="lake", trigger="available_now") }}
select id, ts, to_date(ts) as date, upper(kind) as kind, i.name, i.price, b.channel
from {{ source("shop", "orders") }}
lateral view explode(items) t as i
lateral view inline(array(from_json(body, "channel string"))) b as channel
where amount > 1
