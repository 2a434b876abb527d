"""The names and signatures of Spark's functions."""
