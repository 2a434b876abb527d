-- User sessions: the bids of each user until ten seconds without one.
{{ config(sink='out') }}
select bidder, count(*) as bids, session_window.start as start_time, session_window.end as end_time
from {{ ref('bid') }}
group by session_window(date_time, '10 seconds'), bidder
