-- Monitor new users: who came and sold something within the same ten seconds.
{{ config(sink='out') }}
with persons as (
    select window, id, name from {{ ref('person') }} group by window(date_time, '10 seconds'), id, name
),
sellers as (
    select window, seller from {{ ref('auction') }} group by window(date_time, '10 seconds'), seller
)
select p.id, p.name, p.window.start as start_time
from persons as p
join sellers as s on p.id = s.seller and p.window = s.window
