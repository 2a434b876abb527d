{% set days = '7' %}
select {{ days + 1 }} as days
