{{ config(sink='lake') }}
select id, _change_type + 1 as kind, _commit_version, _commit_timestmp from {{ source('lake', 'skipping') }}
