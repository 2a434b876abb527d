"""What a query does, without Spark: a tree of operators with the columns that flow through them."""
