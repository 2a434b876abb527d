insert into lake
select * from {{ source('shop', 'orders') }}
