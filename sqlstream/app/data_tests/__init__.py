"""`sqlstream test --data`: checks the data tests of models on the rows that their sinks hold."""
