-- A model that shares its name with the folder cloudtrail/alerts, and closes a diamond over cloudtrail_events.
{{ config(sink='warehouse', output_mode='append', tags=['security', 'urgent'], meta={'owner': 'secops', 'pager': true}) }}
select event_time, user_name, 'root login' as alert from {{ ref('root_logins') }}
union all
select window_start as event_time, user_name, 'failed logins' as alert from {{ ref('failed_logins_5m') }}
union all
select event_time, user_name, 's3 read' as alert from {{ ref('s3_reads') }}
