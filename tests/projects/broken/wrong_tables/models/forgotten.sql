select * from {{ source('lake', 'forgotten') }}
