select * from {{ source('shop', 'orders') }}
{% if is_incremental() %} where ordered_at > '2024-01-01' {% endif %}
