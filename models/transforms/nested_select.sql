select station, time, place.city, place.at.lat, place.at.lon
from {{ source('weather', 'readings') }}
