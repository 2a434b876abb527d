{{ exceptions.warn('shipped is deprecated, use orders') }}
select 1 as one
