-- A model that shares its name with the folder models/shop and with the source shop.
{{ config(sink='warehouse', output_mode='append', tags=['gold'], meta={'owner': 'shop_team', 'sla': {'level': 'silver'}}) }}
select hour, orders, amount from {{ ref('orders_by_hour') }}
