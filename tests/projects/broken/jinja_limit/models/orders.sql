select
{% for a in range(1000) %}{% for b in range(1000) %}{% for c in range(1000) %}
  {{ a }},
{% endfor %}{% endfor %}{% endfor %}
  1
from {{ source('shop', 'orders') }}
