"""Rules on what a sink takes."""
