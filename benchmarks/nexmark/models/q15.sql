-- Statistics of a day: how many users bid on how many auctions, by the rank of the price.
-- sqlstream: allow unbounded-state because Nexmark asks for all of the past
{{ config(sink='out', output_mode='update', unique_key='day') }}
select date_format(date_time, 'yyyy-MM-dd') as day, {{ ranked_bids() }}, {{ ranked_users() }}
from {{ ref('bid') }}
group by date_format(date_time, 'yyyy-MM-dd')
