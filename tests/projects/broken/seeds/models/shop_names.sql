select * from {{ ref("shops") }}
