{{ config(sink='by_city', unique_key='id', delete_when='is_gone') }}
select id, city, tags, is_gone from {{ source('shop', 'orders') }}
