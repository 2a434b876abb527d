select date_time, person.* from {{ source('nexmark', 'events') }} where event_type = 0
