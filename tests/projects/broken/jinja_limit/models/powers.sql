select {{ 9 ** 99999 }} as n
from {{ ref('orders') }}
