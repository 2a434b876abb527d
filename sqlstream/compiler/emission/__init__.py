"""When the rows of a query come out."""
