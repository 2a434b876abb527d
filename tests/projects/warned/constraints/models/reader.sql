{{ config(sink='lake') }}
select order_id from {{ ref('seen') }}
