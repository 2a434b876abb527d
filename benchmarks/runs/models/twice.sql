select event_time, amount * 2 as twice from {{ source('made', 'events') }}
