"""From what a client sends to new entries of its ledger."""
