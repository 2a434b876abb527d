-- Currency conversion: the price of each bid in euros.
{{ config(sink='out') }}
select auction, bidder, 0.908 * price as price, date_time, extra
from {{ ref('bid') }}
