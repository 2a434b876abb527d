{{ config(partition_by=['date']) }}
{{ flatten_cloudtrail(source('aws', 'cloudtrail_logs')) }}
