-- Top ten: the ten highest bids on each auction. Nexmark's ROW_NUMBER() <= 10, as an aggregation.
-- sqlstream: allow unbounded-state because Nexmark asks for all of the past
{{ config(sink='out', output_mode='update', unique_key='auction') }}
select auction, slice(sort_array(collect_list(struct(price, date_time, bidder)), false), 1, 10) as top
from {{ ref('bid') }}
group by auction
