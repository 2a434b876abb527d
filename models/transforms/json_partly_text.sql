select key, message.device, message.payload, from_json(message.payload, 'volts int').volts as volts
from (
    select key, from_json(value, 'device string, speed int, payload string') as message
    from {{ source('weather', 'messages') }}
)
