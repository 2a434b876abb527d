{{ config(sink='nest_sightings', output_mode='update', unique_key=['zip_code', 'hour']) }}
select /*+ WATERMARK(c.event_time, '10 minutes') */
    l.zip_code,
    window.start as hour,
    count(*) as sightings
from {{ ref('nest_cameras') }} as c
join {{ ref('device_locations') }} as l on l.device = c.device_id
where c.has_person
group by l.zip_code, window(c.event_time, '1 hour')
