select
    camera.device_id,
    camera.name,
    camera.is_online,
    camera.last_event.start_time as event_time,
    camera.last_event.end_time,
    camera.last_event.has_person,
    camera.last_event.has_motion,
    camera.last_event.has_sound
from (select explode(devices.cameras) as (id, camera) from {{ source('nest', 'updates') }})
