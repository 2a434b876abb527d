-- Static: both inputs are seeds.
select c.customer_id, r.region_name
from {{ ref('customers') }} c
join {{ ref('regions_2') }} r on c.region_id = r.region_id
