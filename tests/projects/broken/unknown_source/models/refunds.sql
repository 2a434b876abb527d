select *
from {{ source('shpo', 'orders') }}
