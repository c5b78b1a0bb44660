"""Mechanisms: each proposes what it could remove and carries it out."""
