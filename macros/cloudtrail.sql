{#- One row per audit record: the array of a file exploded, its time parsed, its nested fields flattened. -#}
{% macro flatten_cloudtrail(logs) -%}
select
    record.eventID as event_id,
    to_timestamp(record.eventTime, "yyyy-MM-dd'T'HH:mm:ss'Z'") as event_time,
    to_date(record.eventTime, "yyyy-MM-dd'T'HH:mm:ss'Z'") as date,
    record.eventSource as event_source,
    record.eventName as event_name,
    record.awsRegion as region,
    record.sourceIPAddress as source_ip,
    record.userAgent as user_agent,
    record.userIdentity.type as user_type,
    record.userIdentity.arn as user_arn,
    record.userIdentity.userName as user_name,
    record.userIdentity.sessionContext.attributes.mfaAuthenticated = 'true' as mfa,
    record.recipientAccountId as account_id,
    record.errorCode as error_code,
    record.errorMessage as error_message,
    record.readOnly as read_only,
    record.requestParameters as request_parameters,
    record.responseElements as response_elements
from (select explode(Records) as record from {{ logs }})
{%- endmacro %}
