{{ config(sink='nest_updates') }}
select value from {{ source('nest', 'recording') }}
