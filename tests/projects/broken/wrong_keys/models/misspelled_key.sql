{{ config(sink='screen', output_mode='update', unique_key=['ident', 'kind']) }}
select id as identity, kind from {{ source('shop', 'orders') }}
