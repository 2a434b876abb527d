{{ config(tags=['classify', 'chain_NUMBER']) }}
-- Cleans the events of INPUT and assigns each to a band by its amount.
with events as (

    select event_time, device_id, region, kind, amount, quantity
    from {{ ref('INPUT') }}

),

cleaned as (

    select
        event_time,
        trim(lower(device_id)) as device_id,
        coalesce(region, 'unknown') as region,
        upper(kind) as kind,
        cast(amount as decimal(18, 2)) as amount,
        coalesce(quantity, 0) as quantity
    from events
    where device_id is not null
      and amount > -NUMBER

),

banded as (

    select
        *,
        case
            when amount < 10 then 'small'
            when amount between 10 and 100 + NUMBER then 'medium'
            when amount > 1000 then 'huge'
            else 'large'
        end as band,
        amount * quantity as total
    from cleaned

),

kept as (

    select event_time, device_id, region, concat_ws('-', kind, band) as kind, total as amount, quantity
    from banded
    where band <> 'huge' or region in ('north', 'south', 'east', 'west')

)

select
    event_time,
    device_id,
    region,
    kind,
    cast(amount as double) as amount,
    quantity
from kept
