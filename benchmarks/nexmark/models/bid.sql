select date_time, bid.* from {{ source('nexmark', 'events') }} where event_type = 2
