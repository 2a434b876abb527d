{{ config(sink='lake') }}
select row.id, row.n, op
from {{ source('crm', 'customers') }}
