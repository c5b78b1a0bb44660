"""What a session shares with another: a fork has its first messages in common with it, a copy all its calls."""

from msgspec import Struct
from msgspec.structs import replace

from lowwater.logs.recording import Recording
from lowwater.replay.importing.lines import RecordedFile


class Sharing(Struct, kw_only=True):
    """The calls of one session so far, and which of them another one told before."""

    session: str
    calls: int = 0
    new: int = 0
    messages: int = 0
    """How many of its first messages the other has too."""
    teller: str = ""
    """The other."""

    def tells(self, file: RecordedFile, call: str) -> bool:
        """Count a call, and tell whether it is this session that tells of it."""
        self.calls += 1
        teller = file.told_by(call, self.session)
        if teller is None:
            self.new += 1
        elif not self.new:
            self.teller = teller
        return teller is None

    def answered(self, messages: int) -> None:
        """Take note that the last call and its results are told, with so many messages up to there."""
        if not self.new:
            self.messages = messages

    @property
    def is_copy(self) -> bool:
        """Whether another session has told all its calls."""
        return self.calls > 0 and self.new == 0

    def related(self, recording: Recording, *, parent: str = "", relation: str = "") -> Recording:
        """Return the recording as what it says it is; else as a fork, if it shares messages with another."""
        if not relation and self.messages:
            parent, relation = self.teller, "fork"
        return replace(recording, parent=parent, relation=relation, shared=self.messages)
