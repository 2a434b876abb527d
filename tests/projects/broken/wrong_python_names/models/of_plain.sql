{{ config(sink='sent') }} select * from {{ source('made', 'plain') }}
