"""Recall: originals back from the ledger, for people and as tools for the model."""
