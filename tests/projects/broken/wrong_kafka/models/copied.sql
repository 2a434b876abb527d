{{ config(sink='out') }}
select cast(value as string) as value from {{ source('bus', 'values') }}
