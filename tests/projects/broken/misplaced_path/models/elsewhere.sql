{{ config(sink='lake', options={'path': 'elsewhere'}) }}
select order_id from {{ source('shop', 'returns') }}
