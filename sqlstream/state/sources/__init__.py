"""How far each query has read its sources, from its checkpoint and ledger."""
