{{ config(snik='lake', trigger='soon') }}
{% if target.name == 'prod' %}
select * from {{ ref('orders') }}
