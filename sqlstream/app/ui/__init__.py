"""What the page `sqlstream ui` shows: the data of runs, of the project and of its checkpoints, without Spark."""
