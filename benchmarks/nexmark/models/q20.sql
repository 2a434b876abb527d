-- Expand bids with their auctions, of one category.
-- sqlstream: allow unbounded-state because Nexmark asks for all of the past
{{ config(sink='out') }}
select
    b.auction, b.bidder, b.price, b.channel, b.url, b.date_time as bid_time, b.extra as bid_extra,
    a.item_name, a.description, a.initial_bid, a.reserve, a.date_time as auction_time, a.expires, a.seller, a.category,
    a.extra as auction_extra
from {{ ref('bid') }} as b
join {{ ref('auction') }} as a on b.auction = a.id
where a.category = 10
