-- orders above the threshold
{%- set threshold = 100 -%}
select * from {{ source('shop', 'orders') }} where amount > {{ threshold }}
