-- Disabled: no selector may ever give it, nor anything by way of it.
{{ config(enabled=false, sink='archive', output_mode='append', tags=['legacy']) }}
select event_time, user_name
from {{ ref('root_logins') }}
