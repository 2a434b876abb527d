{{ config(deduplicate=['host', 'file', 'offset']) }}
-- sqlstream: allow repeated-state because two queries keep ten minutes of lines each
select /*+ WATERMARK(collected_at, '10 minutes') */
    metadata.host,
    metadata.service,
    metadata.file,
    metadata.offset,
    collected_at,
    body
from {{ source('collector', 'lines') }}
