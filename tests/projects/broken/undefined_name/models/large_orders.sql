select *
from {{ ref('orders') | frist }}
