with large as (
  select * from {{ source('shop', 'orders') }}
)
INSERT INTO lake select * from large
