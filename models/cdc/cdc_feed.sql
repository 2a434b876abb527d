{{ config(sink='cdc_changes') }}
select
    coalesce(get_json_object(value, '$.after.id'), get_json_object(value, '$.before.id')) as key,
    value
from {{ source('crm', 'recording') }}
