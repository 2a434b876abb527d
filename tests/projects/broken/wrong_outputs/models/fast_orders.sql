{{ config(sink='screen', trigger={'continuous': '1 second'}) }}
select * from {{ ref('orders') }}
