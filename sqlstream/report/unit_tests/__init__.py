"""Results of unit tests as text, JSON and JUnit XML."""
