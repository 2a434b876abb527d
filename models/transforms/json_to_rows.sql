select key, message.device, message.speed, message.device is null as unreadable
from (select key, from_json(value, 'device string, speed int') as message from {{ source('weather', 'messages') }})
