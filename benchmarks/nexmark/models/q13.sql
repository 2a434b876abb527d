-- Bounded side input: a join with a static table.
{{ config(sink='out') }}
select b.auction, b.bidder, b.price, b.date_time, s.value
from {{ ref('bid') }} as b
join {{ source('nexmark', 'side_input') }} as s on b.auction % 10000 = s.key
