select key, device, speed
from {{ source('weather', 'messages') }}
lateral view json_tuple(value, 'device', 'speed') as device, speed
