-- Log to files, by day and minute.
{{ config(sink='files', partition_by=['day', 'minute']) }}
select
    auction, bidder, price, date_time, extra,
    date_format(date_time, 'yyyy-MM-dd') as day,
    date_format(date_time, 'HH:mm') as minute
from {{ ref('bid') }}
