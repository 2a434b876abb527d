select timestamp_seconds(time) as event_time, lower(action) as action, customer_id
from {{ source('lockers', 'events') }}
