{{ config(sink='lake', trigger='10 seconds') }}
select o.id, t.total, t.totl from {{ ref('orders') }} o join {{ ref('totals') }} t on o.kind = t.kind
