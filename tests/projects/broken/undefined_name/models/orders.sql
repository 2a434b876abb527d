{% set currency = 'EUR' %}
select order_id, amount, ordered_at, '{{ curency }}' as currency
from {{ source('shop', 'orders') }}
where model = '{{ model.nam }}'
