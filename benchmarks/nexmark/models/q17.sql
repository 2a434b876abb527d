-- Statistics of an auction and day: bids and prices.
-- sqlstream: allow unbounded-state because Nexmark asks for all of the past
{{ config(sink='out', output_mode='update', unique_key=['auction', 'day']) }}
select
    auction, date_format(date_time, 'yyyy-MM-dd') as day, {{ ranked_bids() }},
    min(price) as min_price, max(price) as max_price, avg(price) as avg_price, sum(price) as sum_price
from {{ ref('bid') }}
group by auction, date_format(date_time, 'yyyy-MM-dd')
