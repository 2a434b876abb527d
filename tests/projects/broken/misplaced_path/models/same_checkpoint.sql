{{ config(sink='lake', checkpoint='queries/./orders') }}
select order_id from {{ source('shop', 'orders') }}
