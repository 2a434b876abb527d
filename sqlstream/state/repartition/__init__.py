"""Pure decisions about a repartition of a query's state: what Spark can do, and what an interruption leaves."""
