/* all payments
select * from {{ ref('orders') }}
