select station, struct(*) as reading
from (select station, temperatures, sensors from {{ source('weather', 'readings') }})
