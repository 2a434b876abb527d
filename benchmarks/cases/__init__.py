"""What `make bench-test` needs: the same cases as a project of sqlstream's, in pytest and PySpark, and of dbt's."""
