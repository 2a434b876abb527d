"""What a run tells while it lasts, and what is kept of it."""
