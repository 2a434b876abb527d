select {{ 1 / 0 }} as one
from {{ ref('orders') }}
