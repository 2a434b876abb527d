{{ config(sink='results') }}
-- The topic has a message for each change of a count, so the last one of each key counts.
with latest as (
    select max_by(struct(zip_code, hour, sightings), struct(_kafka_partition, _kafka_offset)) as row
    from {{ source('nest', 'sightings') }}
    group by zip_code, hour
)
select row.zip_code, sum(row.sightings) as sightings, max(row.hour) as last_hour
from latest
group by row.zip_code
having sum(row.sightings) > 1000
order by sightings desc
