{{ config(sink='nowhere', trigger='available_now') }}
with both as (
  select ordered_at from {{ source('shop', 'orders') }} watermark ordered_at delay of interval 1 minute
  union all
  select ordered_at from {{ source('shop', 'orders') }} watermark ordered_at delay of interval 1 minute
)
select window.start as hour, count(*) as orders from both group by window(ordered_at, '1 hour')
