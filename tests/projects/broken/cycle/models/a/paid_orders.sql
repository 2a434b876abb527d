select *
from {{ ref('payments') }}
where paid
