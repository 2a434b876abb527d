{{ config(sink='lake', contract={'enforced': false}) }}
select order_id from {{ source('shop', 'orders') }}
