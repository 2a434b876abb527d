{{ config(sink='results', output_mode='complete') }}
select device, location, round(avg(signal), 2) as average_signal, count(*) as signals
from {{ source('iot', 'signals') }}
join {{ ref('device_locations') }} using (device)
group by device, location
order by device
