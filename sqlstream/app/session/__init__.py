"""How a command starts Spark: its jars, its session, its signals, and where its target stores."""
