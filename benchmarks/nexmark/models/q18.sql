-- Last bid: the last bid of each user on each auction. Nexmark's ROW_NUMBER() = 1, as an aggregation.
-- sqlstream: allow unbounded-state because Nexmark asks for all of the past
{{ config(sink='out', output_mode='update', unique_key=['bidder', 'auction']) }}
select bidder, auction, last.date_time, last.price, last.channel, last.url, last.extra
from (
    select bidder, auction, max(struct(date_time, price, channel, url, extra)) as last
    from {{ ref('bid') }}
    group by bidder, auction
)
