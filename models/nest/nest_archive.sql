{{ config(sink='warehouse', partition_by=['date']) }}
select *, to_date(event_time) as date
from {{ ref('nest_cameras') }}
