{{ config(sink='lake', deduplicate='value') }}
-- sqlstream: allow unbounded-state because there are few values
select value from {{ source('shop', 'ticks') }}
