{{ config(sink='ice') }}
select id, kind as ID, parse_json(kind) as j from {{ source('lake', 'orders') }}
