{{ config(sink='nowhere', output_mode='update') }}
select session_window, customer, count(*) as visits
from {{ source('shop', 'visits') }}
group by session_window(at, '5 minutes'), customer
