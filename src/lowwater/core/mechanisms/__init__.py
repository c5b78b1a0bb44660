"""Mechanisms: each proposes what it could remove from a view and carries it out."""
