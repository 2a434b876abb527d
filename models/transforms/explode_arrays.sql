select station, time, position, temperature
from {{ source('weather', 'readings') }}
lateral view posexplode(temperatures) as position, temperature
