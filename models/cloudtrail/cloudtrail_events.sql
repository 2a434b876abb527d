{{ config(sink='warehouse', partition_by=['date']) }}
{{ flatten_cloudtrail(source('aws', 'cloudtrail_logs')) }}
