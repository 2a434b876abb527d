{% set ranks = {'rank1': 'price < 10000', 'rank2': 'price >= 10000 and price < 1000000', 'rank3': 'price >= 1000000'} %}

{% macro ranked_bids() -%}
count(*) as total_bids
{%- for name, condition in ranks.items() %}, count_if({{ condition }}) as {{ name }}_bids{% endfor %}
{%- endmacro %}

{# Spark streams no count(distinct ...), but sets. #}
{% macro ranked_users() -%}
{%- for name in ['bidder', 'auction'] -%}
size(collect_set({{ name }})) as total_{{ name }}s
{%- for rank, condition in ranks.items() %}, size(collect_set({{ name }}) filter (where {{ condition }})) as {{ rank }}_{{ name }}s{% endfor %}
{{- ', ' if not loop.last }}
{%- endfor %}
{%- endmacro %}
