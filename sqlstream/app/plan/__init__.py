"""`sqlstream plan`, and what a run decides before it starts: queries compared with their checkpoints."""
