-- Winning bids: the highest bid on each auction before it expires. Nexmark's ROW_NUMBER() = 1, as an aggregation.
-- sqlstream: allow unbounded-state because Nexmark asks for all of the past
{{ config(sink='out', output_mode='update', unique_key='id') }}
select id, seller, category, expires, winner.bidder, winner.price, winner.extra
from (
    select
        a.id, a.seller, a.category, a.expires,
        max(struct(b.price, -unix_micros(b.date_time) as earliness, b.bidder, b.extra)) as winner
    from {{ ref('auction') }} as a
    join {{ ref('bid') }} as b on a.id = b.auction and b.date_time between a.date_time and a.expires
    group by a.id, a.seller, a.category, a.expires
)
