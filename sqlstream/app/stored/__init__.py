"""What the storage of a target contains: outputs, the files of queries, and the lag of its queries."""
