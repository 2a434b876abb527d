{{ config(
    sink='lake',
    checkpoint='same'
) }}
select * from {{ ref('orders') }}
