select {{ ''.__class__ }}
from {{ ref() }}
