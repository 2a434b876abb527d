{{ config(meta={'owner': 'team NUMBER'}) }}
-- Aggregates the events of INPUT by five minutes, device, region and kind.
with events as (

    select event_time, device_id, region, kind, amount, quantity
    from {{ ref('INPUT') }}

),

filtered as (

    select event_time, device_id, region, kind, amount, quantity
    from events
    where kind is not null
      and not (region = 'test' and quantity > NUMBER)

),

counted as (

    select
        window,
        device_id,
        region,
        kind,
        sum(amount) as amount,
        count(*) as quantity,
        max(quantity) as most,
        avg(amount) as mean
    from filtered
    group by window(event_time, '5 minutes'), device_id, region, kind

),

ranked as (

    select
        window_time(window) as event_time,
        *,
        if(mean > 100, 'above', 'below') as side,
        named_struct('most', most, 'mean', mean) as facts
    from counted

)

select
    event_time,
    device_id,
    region,
    concat(kind, '/', side) as kind,
    amount + facts.mean as amount,
    cast(quantity as int) as quantity
from ranked
where facts.most >= 0
