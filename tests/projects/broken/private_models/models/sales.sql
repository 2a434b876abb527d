{{ config(sink='out', group='sales') }}
select p.amount from {{ ref('payments') }} p join {{ ref('alone') }} a on p.order_id = a.order_id
