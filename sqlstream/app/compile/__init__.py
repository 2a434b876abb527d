"""`sqlstream compile`, `ls` and `lineage`: what a project says before anything runs."""
