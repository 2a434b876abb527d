select station, time, explode(sensors) as (sensor, value)
from {{ source('weather', 'readings') }}
