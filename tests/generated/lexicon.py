"""Words and short technical sentences of one domain, drawn on demand."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tests.generated import cjk
from tests.generated.draw import Draw
from tests.generated.naming import doing, past, plural, third
from tests.generated.words import PLUMBING, QUALITIES, SHORT, VERBS, domain_words

# Slots: {n} noun, {ns} plural noun, {t} thing of two words, {v} verb, {vs} third person, {ved} past, {ving} act,
# {q} quality, {d} number.
_REMARKS = (
    "the {t} is {ved} only once per {n}",
    "keep the {q} {n} around: the {n2} still {vs} it",
    "{ns} older than {d} ms were already {ved}",
    "{ving} here would race with the {t}",
    "a {q} {n} has no {n2} yet",
    "see the note on {ns} in the {n2} design",
    "upstream {vs} {q} {ns} in pages of {d}",
    "falls back to the {q} {n} when nothing {vs}",
    "must run before the {t} is {ved}",
    "the {n} may be {q} after a {n2} {vs}",
    "not an error: {q} {ns} are {ved} by the {t} later",
    "ordered by {n}, then by {n2}",
    "the limit of {d} comes from the {t}",
    "{v} first, {v2} later: the {n} holds the lock",
    "TODO: {v} the {q} {ns} too",
    "an empty {n} means every {n2}",
    "{ns} arrive out of order when the {n2} is {q}",
    "never {v} a {q} {n} twice",
    "cheap enough at {d} {ns} a second",
    "the {q} case is {ved} by the caller",
    "rounds towards the {q} {n}",
    "clients before 2.{d2} send a {q} {n} instead",
)
_DOCS = (
    "{V} the {t} and return its {n}.",
    "Return the {q} {ns} of a {t}.",
    "{V} every {n} that the {n2} has {ved}.",
    "Tell whether the {t} can be {ved} without the {n}.",
    "{V} a {n} from {ns} that were {ved} before.",
    "{V} up to `limit` {q} {ns}; the rest stays in the {n2}.",
    "Raise if the {n} is {q}; {v} it otherwise.",
    "{V} the {n}, {ving} each {n2} on the way.",
    "Everything about {ving} {q} {ns}.",
    "How a {t} is {ved} and {ved2}.",
    "The {q} {n} behind a {n2}.",
)
_COMMITS = (
    "{v} {q} {ns} before the {n2} is {ved}",
    "fix {q} {n} when {ving} {ns}",
    "{n}: {v} the {t} once",
    "move {n} {ving} into the {n2}",
    "drop support for {q} {ns}",
    "{v} {ns} in batches of {d}",
    "add a test for {q} {ns}",
    "{n}: do not {v} {q} {ns2}",
    "rename {n} to {n2} where it is {ved}",
)
_MESSAGES = (
    "{ved} {q} {n}",
    "cannot {v} {n}: {n2} is {q}",
    "no {q} {n} to {v}",
    "{n} exceeded its {n2} of {d}",
    "{ving} {t}",
    "{n} and {n2} disagree",
    "skipped {d} {q} {ns}",
    "expected {q} {n} after {ving}",
    "{n2} rejected by {t}",
)
_NO_FACTS: Mapping[str, Callable[[], object]] = MappingProxyType({})


class Lexicon:
    """One domain's words under one stream of choices."""

    def __init__(self, draw: Draw, domain: str) -> None:
        self.draw = draw
        self.domain = domain
        self.nouns = domain_words(domain) * 3 + PLUMBING

    def noun(self) -> str:
        """Return a noun."""
        return self.draw.one(self.nouns)

    def local(self) -> tuple[str, ...]:
        """Return the words of a variable's name: often a short one."""
        draw = self.draw
        if draw.chance(0.5):
            return (draw.one(SHORT),)
        return self.thing() if draw.chance(0.35) else (self.noun(),)

    def thing(self) -> tuple[str, ...]:
        """Return two or three words that name something."""
        draw = self.draw
        last = self.noun()
        first = draw.one(QUALITIES) if draw.chance(0.55) else self.noun()
        if draw.chance(0.12):
            return (draw.one(QUALITIES), first, last) if first != last else (first, "of", last)
        return (first, last) if first != last else (draw.one(QUALITIES), last)

    def action(self) -> tuple[str, ...]:
        """Return a verb and what it is done to."""
        return (self.draw.one(VERBS), *self.thing())

    def remark(self) -> str:
        """Return a comment, now and then one in another script."""
        if self.draw.chance(0.008):
            return cjk.sentence(self.draw, self.draw.one(cjk.LANGUAGES))
        return self.fill(self.draw.one(_REMARKS))

    def doc(self) -> str:
        """Return a sentence that documents a function."""
        return self.fill(self.draw.one(_DOCS))

    def commit(self) -> str:
        """Return the subject of a commit."""
        return self.fill(self.draw.one(_COMMITS))

    def message(self) -> str:
        """Return what a log line or an error says."""
        return self.fill(self.draw.one(_MESSAGES))

    def fill(self, template: str, facts: Mapping[str, Callable[[], object]] = _NO_FACTS) -> str:
        """Return a template with its slots filled: those named in `facts` by what it gives, the others by words."""
        return _with_articles(template.format_map(_Slots(self, facts)))


class _Slots(dict[str, object]):
    """Words for the slots of one template, drawn when they are asked for and kept for the rest of it."""

    def __init__(self, lexicon: Lexicon, facts: Mapping[str, Callable[[], object]]) -> None:
        super().__init__()
        self._lexicon = lexicon
        self._facts = facts

    def __missing__(self, slot: str) -> object:
        given = self._facts.get(slot)
        word = self[slot] = given() if given else self._word(slot)
        return word

    def _word(self, slot: str) -> object:
        lexicon = self._lexicon
        match slot:
            case "n" | "n2":
                return lexicon.noun()
            case "ns" | "ns2":
                return plural(str(self["n" + slot[2:]]))
            case "t":
                return " ".join(lexicon.thing())
            case "v" | "v2":
                return lexicon.draw.one(VERBS)
            case "V":
                return str(self["v"]).capitalize()
            case "vs":
                return third(str(self["v"]))
            case "ved" | "ved2":
                return past(str(self["v" + slot[3:]]))
            case "ving":
                return doing(str(self["v"]))
            case "q":
                return lexicon.draw.one(QUALITIES)
            case "d":
                return lexicon.draw.between(2, 999)
            case "d2":
                return lexicon.draw.between(0, 19)
        raise KeyError(slot)


def _with_articles(text: str) -> str:
    for vowel in "aeiou":
        text = text.replace(f" a {vowel}", f" an {vowel}")
    return text
