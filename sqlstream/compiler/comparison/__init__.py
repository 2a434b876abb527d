"""What decides the state of a query, from its compiled SQL, to compare two versions of it without Spark."""
