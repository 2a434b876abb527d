"""What `sqlstream replay` needs: the query as it ran, its parts, and a unit test of a batch."""
