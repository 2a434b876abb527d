{{ config(sink='lake') }}
select row.*, op
from {{ source('crm', 'customers') }}
