"""What a changed query means for its readers: differences of its columns, and what they break."""
