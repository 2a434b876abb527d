{{ config(sink='nowhere') }}
{%- set least = 1 -%}
-- a note {#- hidden -#}
-- another note
select order_id {# no break #} -- the key
{%- if least -%}
  , ordered_at
{%- endif %}
  , 1 as one -- {{ least }} and {{ 'more' }}
  , 2 as two -- 2
{%- set x = 1 %}
  , 3 as three {%- set y = 1 -%} -- three
  , '-- no' as four
from {{ source('shop', 'orders') }} -- the source {%- set z = 1 %}
{% for i in [1] %} -- loop {{ i }}
{%- endfor %}
where order_id > 0 -- first {%- set w = 1 -%}
  -- second
