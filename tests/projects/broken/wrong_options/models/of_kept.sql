{{ config(sink='lake') }} select * from {{ source('made', 'kept') }}
