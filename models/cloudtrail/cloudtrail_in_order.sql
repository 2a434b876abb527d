{{ flatten_cloudtrail(source('aws', 'cloudtrail_logs_in_order')) }}
