"""What each command does, without its command line: one folder for each feature. Loads pyspark only when needed."""
