"""Summaries: written without a model, framed, checked, repaired, and prepared for models that write them."""
