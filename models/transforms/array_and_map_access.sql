select
    station,
    temperatures[0] as latest,
    try_element_at(temperatures, -1) as earliest,
    size(temperatures) as measured,
    sensors['wind'] as wind,
    try_element_at(sensors, 'rain') as rain
from {{ source('weather', 'readings') }}
