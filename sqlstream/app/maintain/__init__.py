"""`sqlstream maintain`: tables and files of sinks compacted, with readers undisturbed."""
