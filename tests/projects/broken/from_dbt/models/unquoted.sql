select * from {{ ref(orders) }}
