{{ config(sink='archive', checkpoint='same') }}
select * from {{ ref('orders') }}
