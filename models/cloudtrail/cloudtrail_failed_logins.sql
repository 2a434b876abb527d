{{ config(sink='warehouse', output_mode='append') }}
{% set most_failures = 5 %}
select /*+ WATERMARK(event_time, '10 minutes') */
    window.start as since,
    window.end as until,
    source_ip,
    count_if(failed_login) as failures,
    sort_array(collect_set(user_name) filter (where failed_login)) as user_names
from (
    select
        *,
        event_name = 'ConsoleLogin' and get_json_object(response_elements, '$.ConsoleLogin') = 'Failure' as failed_login
    from {{ ref('cloudtrail_in_order') }}
)
-- not filtered by WHERE: Spark filters below the watermark, which only the next failed login would then move
group by window(event_time, '10 minutes'), source_ip
having count_if(failed_login) >= {{ most_failures }}
