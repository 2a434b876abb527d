select station as key, to_json(struct(time, place.city, sensors)) as value
from {{ source('weather', 'readings') }}
