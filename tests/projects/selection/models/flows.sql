{{ config(sink='archive', output_mode='append', trigger='available_now', tags=['network']) }}
select start, src_addr, dst_addr, bytes
from {{ source('aws', 'vpc_flow_logs') }}
where action = 'ACCEPT'
