select date_time, auction.* from {{ source('nexmark', 'events') }} where event_type = 1
