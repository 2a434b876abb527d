select id from {{ source('shop', 'bills') }}
