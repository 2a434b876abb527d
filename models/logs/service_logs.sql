{{ config(sink='warehouse', partition_by=['date']) }}
with parsed as (
    select
        *,
        from_json(body, 'time timestamp, level string, logger string, message string, millis int') as entry,
        to_timestamp({{ log4j_part('body', 1) }}, 'yyyy-MM-dd HH:mm:ss,SSS') as log4j_time
    from {{ ref('log_lines') }}
)
select
    date(coalesce(entry.time, log4j_time, collected_at)) as date,
    case when entry.time is not null then 'json' when log4j_time is not null then 'log4j' else 'text' end as format,
    coalesce(entry.time, log4j_time) as logged_at,
    host,
    service,
    coalesce(entry.level, {{ log4j_part('body', 2) }}) as level,
    coalesce(entry.logger, {{ log4j_part('body', 4) }}) as logger,
    coalesce(entry.message, {{ log4j_part('body', 5) }}, body) as message,
    {{ log4j_part('body', 3) }} as thread,
    entry.millis,
    file,
    offset
from parsed
