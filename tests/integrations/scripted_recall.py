"""A scripted model that reads logs as the bench's does, and recalls what step 2 read when asked to."""

from bench.frameworks.scripted import ScriptedModel
from bench.frameworks.task import days_of, fact_of, service_of
from lowwater.testing.provider import Answer, Call, CallTools, Say, Seen

FACT = fact_of(service_of(2), days_of(2, 1)[0])
ASKED = "Recall what step 2 read."
ANSWERED = "That is what step 2 read."


class Recalling:
    """Looks only at the last message of a request."""

    def __init__(self) -> None:
        self._model = ScriptedModel()

    def __call__(self, seen: Seen) -> Answer:
        """Return the answer to a request."""
        last = seen.body["messages"][-1]
        if last["role"] == "user" and ASKED in str(last["content"]):
            return CallTools((Call("lowwater_search", {"query": FACT}),))
        if last["role"] == "tool" and FACT in str(last["content"]) and "lw:" in str(last["content"]):
            return Say(ANSWERED)
        return self._model(seen)
