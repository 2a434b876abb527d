"""What a plan needs: the ledgers, the queries as the compiler or Spark sees them, and the details of each verdict."""
