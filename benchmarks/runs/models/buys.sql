select * from {{ source('made', 'events') }} where kind = 'buy'
