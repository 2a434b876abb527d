-- Windows of processing time: the bids of each user in each ten seconds.
-- sqlstream: allow unbounded-state because Nexmark asks for all of the past
{{ config(sink='out', output_mode='update', unique_key=['bidder', 'start_time']) }}
select bidder, count(*) as bids, window.start as start_time, window.end as end_time
from (select bidder, current_timestamp() as processed_at from {{ ref('bid') }})
group by window(processed_at, '10 seconds'), bidder
