-- Highest bid: the bids with the highest price in each ten seconds.
{{ config(sink='out') }}
with bids as (
    select
        window(date_time, '10 seconds') as window, auction, price, bidder, extra,
        date_time + interval '0' second as bid_time  -- not an event time, of which Spark takes only one in a stream
    from {{ ref('bid') }}
),
highest as (
    select window, max(price) as price from {{ ref('bid') }} group by window(date_time, '10 seconds')
)
select b.auction, b.price, b.bidder, b.bid_time, b.extra
from bids as b
join highest as h on b.window = h.window and b.price = h.price
