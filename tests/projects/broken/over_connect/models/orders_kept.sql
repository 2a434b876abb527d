{{ config(sink='ledger') }}
select id, amount from {{ source('shop', 'orders') }}
