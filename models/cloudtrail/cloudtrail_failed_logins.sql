{{ config(sink='warehouse', output_mode='append') }}
{% set most_failures = 5 %}
select /*+ WATERMARK(event_time, '10 minutes') */
    window.start as since,
    window.end as until,
    source_ip,
    count(*) as failures,
    collect_set(user_name) as user_names
from {{ ref('cloudtrail_in_order') }}
where event_name = 'ConsoleLogin'
  and get_json_object(response_elements, '$.ConsoleLogin') = 'Failure'
group by window(event_time, '10 minutes'), source_ip
having count(*) >= {{ most_failures }}
