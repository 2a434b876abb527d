{{ config(sink='console', output_mode='complete') }}
select word, count(*) as times
from (select explode(split(value, ' +')) as word from {{ source('text', 'lines') }})
where word <> ''
group by word
order by times desc, word
