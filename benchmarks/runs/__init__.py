"""What `make bench-run` needs: rows, projects, the queries written by hand, and how they are measured."""
