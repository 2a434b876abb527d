-- Selection: the bids on some auctions.
{{ config(sink='out') }}
select auction, price
from {{ ref('bid') }}
where auction % 123 = 0
