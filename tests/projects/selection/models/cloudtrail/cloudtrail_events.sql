select cast(record.eventTime as timestamp) as event_time,
       record.eventName as event_name,
       record.eventSource as event_source,
       record.userType as user_type,
       record.userName as user_name,
       record.sourceIp as source_ip,
       record.errorCode as error_code
from (select explode(Records) as record from {{ source('aws', 'cloudtrail_logs') }})
