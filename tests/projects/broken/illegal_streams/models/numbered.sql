{{ config(sink='nowhere') }}
select monotonically_increasing_id() as id, customer from {{ source('shop', 'orders') }}
