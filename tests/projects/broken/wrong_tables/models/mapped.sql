{{ config(sink='lake', options={'delta.columnMapping.mode': 'name'}) }}
select id as `order id` from {{ source('lake', 'orders') }}
