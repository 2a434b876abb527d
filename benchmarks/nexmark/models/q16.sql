-- Statistics of a channel and day: how many users bid on how many auctions, by the rank of the price.
-- sqlstream: allow unbounded-state because Nexmark asks for all of the past
{{ config(sink='out', output_mode='update', unique_key=['channel', 'day']) }}
select
    channel, date_format(date_time, 'yyyy-MM-dd') as day, max(date_format(date_time, 'HH:mm')) as minute,
    {{ ranked_bids() }}, {{ ranked_users() }}
from {{ ref('bid') }}
group by channel, date_format(date_time, 'yyyy-MM-dd')
