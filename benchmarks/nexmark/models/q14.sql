-- Calculation: an expression used twice, and the letters c in a text.
{{ config(sink='out') }}
select
    auction, bidder, 0.908 * price as price,
    case
        when hour(date_time) between 8 and 18 then 'dayTime'
        when hour(date_time) <= 6 or hour(date_time) >= 20 then 'nightTime'
        else 'otherTime'
    end as time_type,
    date_time, extra,
    length(extra) - length(replace(extra, 'c', '')) as c_counts
from {{ ref('bid') }}
where 0.908 * price > 1000000 and 0.908 * price < 50000000
