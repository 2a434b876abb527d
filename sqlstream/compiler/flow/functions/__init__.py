"""What is known of Spark's functions."""
