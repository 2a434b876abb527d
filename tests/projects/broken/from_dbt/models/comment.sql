select 1 as one {# to be written
