{{ config(sink='out') }}
select id, '{{ var('zip') }} {{ var('time') }} {{ var('country') }}' as place, {{ var('zp') }} as x from {{ source('shop', 'orders') }}
