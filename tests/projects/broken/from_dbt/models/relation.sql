select * from {{ adapter.get_relation('shop') }}
