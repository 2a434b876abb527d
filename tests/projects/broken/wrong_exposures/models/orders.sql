{{ config(sink='lake') }}
select 1 as id
