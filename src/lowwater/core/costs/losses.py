"""Measured shares of later uses that a rewrite loses, for the prices of the engine and of the replay on courses."""

LOST_BY_ELISION = 0.1
"""Of an elided result: what its digest no longer serves (`python -m bench.recall`)."""
LOST_BY_SUMMARY = 0.99
"""Of what a summary replaces (`python -m bench.reach`): a summary says what was done, and hardly any name that a result held.

With 0.5 instead, recorded sessions cost 1 % less with rework, for more summaries and fewer later uses in view (bench/README.md,
"What a summary loses").
"""
LOST_BEHIND_INDEX = 0.17
"""Of what a summary with an index replaces, for a model that can recall: 105 of 615 uses, in `python -m bench.reach --sample` and, of sources
on which the index was not tuned, in `python -m bench.kept_names` (bench/README.md, "The index behind summaries")."""
