-- Adds columns of the device and its region to the events of INPUT.
with events as (

    select event_time, device_id, region, kind, amount, quantity
    from {{ ref('INPUT') }}

),

devices as (

    select device_id, maker, factor
    from {{ ref('devices') }}

),

regions as (

    select region, country, rate
    from {{ source('reference', 'regions') }}

),

joined as (

    select
        e.event_time,
        e.device_id,
        r.country as region,
        concat(e.kind, ':', coalesce(d.maker, 'nobody')) as kind,
        {{ converted('e.amount', 'coalesce(d.factor, 1.0)') }} as amount,
        e.quantity,
        r.rate
    from events e
    left join devices d on e.device_id = d.device_id
    inner join regions r on e.region = r.region

),

priced as (

    select
        event_time,
        device_id,
        region,
        substring(kind, 1, {{ var('longest_kind') }}) as kind,
        round(amount * rate, 2) as amount,
        quantity + NUMBER as quantity
    from joined
    where amount is not null

)

select event_time, device_id, region, kind, amount, quantity
from priced
