"""Plays a session as its client had it: with the client's own compactions where they were recorded, and nothing of ours."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.costs.prices import INSTRUCTION
from lowwater.core.formats.codec import as_completion, encode_messages
from lowwater.core.messages import Message, Text
from lowwater.core.models.model import Model
from lowwater.core.tokens.counting import rules_for
from lowwater.lab.references.uses import LaterUse, find_words
from lowwater.lab.replay.course_replay import RECENT, CadenceSums, PolicyOutcome, UsesFound
from lowwater.lab.replay.live import cache_lifetime, cost_at_list_price, filler_text
from lowwater.lab.replay.script import FORMAT, REPLACEMENT_KIND, ReplayScript
from lowwater.logs.recording import Recording
from lowwater.logs.recording_builder import is_empty
from lowwater.session.dependencies import ManualClock
from lowwater.session.factories import counter_for
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.settings import CacheTtl, ModelSettings, OutputSettings, Settings

AS_RECORDED = "as-recorded"
"""The name under which a session with its client's own compactions is listed."""
_USUAL_SUMMARY = 2_700
"""Tokens of a summary whose text was not recorded: about the median of the recorded ones (bench/README.md)."""
_LEAST_SUMMARY = 200
"""Characters below which what stands for a summary is only a note that there was one."""


class ClientCompaction(Struct, frozen=True, kw_only=True):
    """A compaction of the client's own."""

    turn: int
    """The index of the first call after it."""
    first_kept: int
    """The number of the first message of the session that the client still sent."""
    summary: str
    """What it put in place of the rest; empty if that was not recorded."""


def client_compactions(recording: Recording) -> list[ClientCompaction]:
    """Return the client's own summaries by the calls and messages of the session's script."""
    found: list[ClientCompaction] = []
    turn = number = 0
    asked = False
    for each in recording.messages:
        if each.kind == REPLACEMENT_KIND:
            if turn or number:
                text = each.message.text
                summary = text if len(text) >= _LEAST_SUMMARY else ""
                found.append(ClientCompaction(turn=turn, first_kept=number + 1, summary=summary))
            continue
        if is_empty(each.message):
            continue
        if each.message.role != "assistant":
            asked = True
            number += 1
        elif asked:
            asked = False
            turn, number = turn + 1, number + 1
    return found


def recorded_lifetime(recording: Recording) -> CacheTtl:
    """Return the cache lifetime that a client mostly asked for; five minutes if its recording does not say."""
    usages = [each.call.usage for each in recording.messages if each.call is not None and each.call.usage]
    short, long = (
        sum(getattr(usage, name) for usage in usages) for name in ("cache_write", "cache_write_long")
    )
    return "1h" if long > short else "5m"


class _UsesCount:
    """Counts where later uses are, in the list that the client sent."""

    def __init__(self) -> None:
        self._counts, self._behind_summaries = Counter[str](), Counter[bool]()

    def add(self, use: LaterUse, newest: ClientCompaction | None) -> None:
        """Count a use after the client's `newest` compaction; one behind a summary that was not recorded is left out."""
        is_sent = newest is None or use.origin.number >= newest.first_kept
        summary = "" if newest is None else newest.summary
        if not is_sent and not summary:
            return
        in_view, is_late = is_sent or find_words(use.text, summary) >= 0, use.later > RECENT
        self._counts.update(uses=1, in_view=in_view, late=is_late, late_in_view=is_late and in_view)
        self._behind_summaries[is_late] += not in_view

    def found(self) -> UsesFound:
        """Return the counts; a client has no recall."""
        counts = self._counts
        return UsesFound(
            uses=counts["uses"],
            in_view=counts["in_view"],
            one_recall=0,
            late=counts["late"],
            late_in_view=counts["late_in_view"],
            lost_recent={"summary": self._behind_summaries[False]} if self._behind_summaries[False] else {},
            lost_late={"summary": self._behind_summaries[True]} if self._behind_summaries[True] else {},
        )


def play_as_recorded(
    script: ReplayScript,
    uses: Sequence[LaterUse],
    compactions: Sequence[ClientCompaction],
    *,
    model: Model,
    outputs: Sequence[int],
    fixed: int,
    cache_ttl: CacheTtl = "auto",
) -> PolicyOutcome:
    """Return what the session costs with its client's own compactions, by the prices and cache rules of `model`.

    `cache_ttl` is the lifetime that the client asked for (`recorded_lifetime`).
    Nothing is charged for what a compaction lost: what the client had to do again for it is among the recorded calls. A use
    counts as in view if its result is still sent or the summary names it; uses behind summaries that were not recorded are
    left out.
    """
    clock, tokenizer, scale = ManualClock(), counter_for(model.name), rules_for(model.name).scale
    settings = Settings(output=OutputSettings(quiet=True), model=ModelSettings(cache_ttl=cache_ttl))
    at_turn = {each.turn: each for each in compactions if each.turn < len(script.exchanges)}
    used = defaultdict[int, list[LaterUse]](list)
    for use in uses:
        used[use.number].append(use)
    cost = summaries = 0
    found = _UsesCount()
    prompts: list[int] = []
    written = reclaimed = rewritten = 0
    sent, warm_until, number = 0, 0.0, 0
    newest: ClientCompaction | None = None
    with Lowwater(
        store="memory:",
        model=model.name,
        policy="never",
        clock=clock,
        settings=settings,
        summarizer=(),
    ) as library:
        session = library.session("as-recorded")
        session.learn_context_length(model.context_length)
        for turn, call in enumerate(script.exchanges):
            clock.advance(max(0.0, call.at - clock.now()))
            new, summary = list(call.new), list[bytes]()
            if compaction := at_turn.get(turn):
                newest = compaction
                tokens = round(tokenizer.count(compaction.summary) * scale) or _USUAL_SUMMARY
                read = sent if clock.now() <= warm_until else 0
                asked = Usage(cache_read=read, uncached=sent - read + INSTRUCTION, output=tokens)
                summaries += cost_at_list_price(asked, model)
                written += asked.prompt + tokens
                text = compaction.summary or filler_text(round(_USUAL_SUMMARY / scale), tokenizer)
                summary = encode_messages([Message(role="user", parts=(Text(text=text),))], FORMAT)
                new = new[max(0, compaction.first_kept - number - 1) :]
            system = filler_text(round(fixed / scale), tokenizer) if fixed and not turn else None
            raws = [msgspec.Raw(raw) for raw in (*summary, *new)]
            if summary:
                prepared = session.prepare(raws, system=system, starts_over=True)
            else:
                session.append(raws)
                prepared = session.prepare(system=system)
            usage = replace(internals(session).expected_usage, output=outputs[turn])
            cost += cost_at_list_price(usage, model)
            if compaction:
                reclaimed += max(0, sent - usage.prompt)
                rewritten += usage.prompt - fixed
            number += len(call.new) + 1
            for use in used.get(number, ()):
                found.add(use, newest)
            session.record(as_completion(msgspec.Raw(call.answer), usage, model.name))
            prompts.append(usage.prompt)
            sent, warm_until = usage.prompt, clock.now() + cache_lifetime(prepared.marks, model)
    return PolicyOutcome(
        policy=AS_RECORDED,
        kind="full",
        arm="",
        is_bounded=False,
        fits=max(prompts) <= model.context_length,
        cost=cost + summaries,
        summaries=summaries,
        recall=found.found(),
        cadence=CadenceSums(
            turns=len(prompts),
            events=len(at_turn),
            intervals=max(at_turn, default=0) - min(at_turn, default=0),
            summary_calls=len(at_turn),
            reclaimed=reclaimed,
            rewritten=rewritten,
            prompt_and_summary_tokens=sum(prompts) + written,
            earliest_changed=0 if at_turn else None,
            summaries=len(at_turn),
        ),
        mean_view=sum(prompts) / len(prompts),
        peak_view=max(prompts),
    )
