{{ config('lake') }}
select 1 as one
