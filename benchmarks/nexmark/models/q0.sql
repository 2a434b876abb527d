-- Pass through: the cost of reading and writing.
{{ config(sink='out') }}
select auction, bidder, price, date_time, extra
from {{ ref('bid') }}
