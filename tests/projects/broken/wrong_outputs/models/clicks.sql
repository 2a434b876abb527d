{{ config(sink='screen', trigger='available_now') }}
select * from {{ source('shop', 'clicks') }}
