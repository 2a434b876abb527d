-- Local item suggestion: who sells items of a category in three states.
-- sqlstream: allow unbounded-state because Nexmark asks for all of the past
{{ config(sink='out') }}
select p.name, p.city, p.state, a.id
from {{ ref('auction') }} as a
join {{ ref('person') }} as p on a.seller = p.id
where a.category = 10 and p.state in ('OR', 'ID', 'CA')
