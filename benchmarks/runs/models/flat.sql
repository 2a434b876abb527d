select event_time, device, upper(kind) as kind, amount
from {{ source('made', 'events') }}
where amount > 1
