{{ config(sink='lake', output_mode='complete') }}
select kind, sum(amount) as amount from {{ source('shop', 'orders') }} group by kind
