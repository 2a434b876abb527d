{{ config(sink='alerts', trigger={'continuous': '1 second'}, options={'channel': 'quick'}) }}
select id from {{ source('shop', 'orders') }}
