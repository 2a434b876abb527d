select station, place.at.*, place.city
from {{ source('weather', 'readings') }}
