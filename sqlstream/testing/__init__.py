"""Unit tests of streams: cases checked against the compiled project, run on Spark, compared with what they expect."""
