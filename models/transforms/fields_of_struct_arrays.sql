select station, time, alarms.kind as kinds, get(alarms, 0).level as first_level
from {{ source('weather', 'readings') }}
