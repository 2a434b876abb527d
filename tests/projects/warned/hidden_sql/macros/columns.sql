{% macro columns() %}order_id, -- the key
  ordered_at -- the event time
{%- endmacro %}
