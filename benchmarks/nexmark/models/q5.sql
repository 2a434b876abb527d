-- Hot items: the auctions with the most bids in the last ten seconds, every two seconds.
{{ config(sink='out') }}
with counts as (
    select window, auction, count(*) as bids
    from {{ ref('bid') }}
    group by window(date_time, '10 seconds', '2 seconds'), auction
),
most as (
    select window, max(bids) as bids, collect_list(struct(auction, bids)) as auctions
    from counts
    group by window
)
select window.start as start_time, hot.auction, hot.bids
from most lateral view explode(filter(auctions, each -> each.bids = most.bids)) as hot
