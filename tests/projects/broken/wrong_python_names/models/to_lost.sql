{{ config(sink='lost') }} select cleaned(value) + 1 as a, clened(value) as b from {{ source('made', 'plain') }}
