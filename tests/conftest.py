"""What holds for every test: sessions are kept in memory, never in the user's own files, and Hypothesis has no stopwatch."""

import os

from hypothesis import Phase, settings

os.environ["LOWWATER_STORE"] = "memory:"
# No test may spend a developer's money: with these set, sessions would ask models for summaries.
for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
    os.environ.pop(name, None)

# `make test` tries the same examples every time, `make test-full` new ones; on a busy machine any example may be slow.
settings.register_profile("fixed", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None, print_blob=True)
# Whether a test fails is all that `tools.mutation` asks, not the smallest example.
settings.register_profile(
    "mutation", deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile(os.environ.get("TESTS_EXAMPLES", "fixed"))
