select {{ cents('amount') }}
from {{ ref('orders') }}
