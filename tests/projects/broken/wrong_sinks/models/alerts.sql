{{ config(sink='alerts') }}
select id, kind from {{ source('shop', 'orders') }} where amount > 100
