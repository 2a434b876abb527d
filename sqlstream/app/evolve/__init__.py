"""`schema_changes: evolve`: the declaration of new fields of a source, written as a patch while a run goes on."""
