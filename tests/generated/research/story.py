"""The course of a research session: searching, reading, taking notes, reporting, being asked for more."""

from collections.abc import Callable, Iterator, Sequence

from tests.generated import cjk
from tests.generated.draw import Draw
from tests.generated.memory import Memory
from tests.generated.research import talk
from tests.generated.research.tools import SYSTEM, TOOLS
from tests.generated.research.topics import TOPICS
from tests.generated.research.web import Page, Web, show_results
from tests.generated.session import Tool
from tests.generated.steps import Act, Ask, Call, Step, Tell
from tests.generated.words import CITIES

_REFUSED = (
    "403 Forbidden",
    "404 Not Found",
    "429 Too Many Requests",
    "timed out after 30 s",
    "502 Bad Gateway",
)


class ResearchStory:
    """A user with questions and an agent that reads the web."""

    tools: tuple[Tool, ...] = TOOLS

    def __init__(self, draw: Draw, memory: Memory) -> None:
        self._draw = draw
        self._memory = memory
        self._topic = draw.one(TOPICS)
        self._web = Web(draw, self._topic)
        self._notes = [f"# Notes on {self._topic.name}", ""]
        self._pages: dict[str, Page] = {}
        self._rules: list[str] = []
        self.system = SYSTEM.format(topic=self._topic.name)

    def steps(self) -> Iterator[Step]:
        """Yield question after question."""
        rule = self._say(talk.RULES)
        self._rules.append(self._memory.note("rule", rule))
        yield Ask(text=self._say(talk.OPENINGS, rule=rule))
        while True:
            yield from self._inquiry()
            yield self._answer()
            while self._draw.chance(0.35):
                question = self._say(talk.FOLLOW_UPS)
                yield Ask(text=question)
                yield from self._check(question)
                yield self._answer()
            yield Ask(text=self._next_question())

    def closing(self) -> Tell:
        """Return the answer so far."""
        return self._answer()

    def _next_question(self) -> str:
        question = self._say(talk.FOLLOW_UPS)
        if self._draw.chance(0.25):
            self._rules.append(self._memory.note("rule", self._say(talk.RULES)))
            question += f" From now on: {self._rules[-1]}"
        return question

    def _inquiry(self) -> Iterator[Step]:
        draw = self._draw
        if draw.chance(0.6):
            items = [
                f"{term}: {draw.one(('figures', 'sources', 'who disagrees', 'costs'))}"
                for term in draw.some(self._topic.terms, 4)
            ]
            listed = "\n".join(f"- {item}" for item in items)
            yield self._act([Call(tool="todo", arguments={"items": items}, output=listed, seconds=0.01)])
        for _ in range(draw.between(1, 4)):
            query = f"{draw.one(self._topic.terms)} {draw.one(self._topic.measures).name} {draw.one((*CITIES, '2025', 'review'))}"
            pages = [self._web.page() for _ in range(draw.between(4, 9))]
            arguments = {"query": query, "max_results": len(pages)}
            yield self._act(
                [
                    Call(
                        tool="web_search",
                        arguments=arguments,
                        output=show_results(draw, pages),
                        seconds=draw.within(0.5, 4),
                    )
                ]
            )
            opened = draw.some(pages, draw.weighted(((1, 5), (2, 3), (3, 2))))
            yield self._act([self._fetch(page) for page in opened])
            yield self._act([self._note(opened)])
        if draw.chance(0.4):
            yield self._act([self._compute()])
        if draw.chance(0.5):
            yield self._act([self._read_notes()])
            yield self._act([self._report()])

    def _check(self, question: str) -> Iterator[Step]:
        draw = self._draw
        named = [page for url, page in self._pages.items() if url in question]
        if named:
            yield self._act([self._fetch(page) for page in named])
        elif draw.chance(0.5):
            yield self._act([self._read_notes()])
        if draw.chance(0.6):
            page = self._web.page()
            yield self._act([self._fetch(page)])
            yield self._act([self._note([page])])
        if draw.chance(0.25):
            yield self._act([self._compute()])

    def _fetch(self, page: Page) -> Call:
        self._memory.note("url", page.url)
        if self._draw.chance(0.06):
            output = f"Could not fetch {page.url}: {self._draw.one(_REFUSED)}"
            return Call(tool="web_fetch", arguments={"url": page.url}, output=output, failed=True, seconds=8)
        self._pages[page.url] = page
        for figure in page.figures[:4]:
            self._memory.note("figure", figure)
        return Call(
            tool="web_fetch", arguments={"url": page.url}, output=page.text, seconds=self._draw.within(0.4, 9)
        )

    def _note(self, pages: Sequence[Page]) -> Call:
        for page in pages:
            figures = "; ".join(dict.fromkeys(page.figures)) or "no figures"
            self._notes += [f"- {page.title} <{page.url}>: {figures}. {self._web.paragraph()}", ""]
        # Notes are kept short: the oldest entries are what an agent drops first.
        self._notes = [*self._notes[:2], *self._notes[2:][-24:]]
        content = "\n".join(self._notes)
        return Call(
            tool="write_file", arguments={"path": "notes.md", "content": content}, output="ok", seconds=0.05
        )

    def _read_notes(self) -> Call:
        return Call(
            tool="read_file", arguments={"path": "notes.md"}, output="\n".join(self._notes), seconds=0.05
        )

    def _report(self) -> Call:
        draw = self._draw
        lines = [f"# {self._topic.name[:1].upper()}{self._topic.name[1:]}", ""]
        for term in draw.some(self._topic.terms, draw.between(2, 4)):
            lines += [f"## {term}", "", self._web.paragraph(), "", self._say(talk.ANSWERS), ""]
        arguments = {"path": "report.md", "content": "\n".join(lines)}
        return Call(tool="write_file", arguments=arguments, output=f"ok, {len(lines)} lines", seconds=0.05)

    def _compute(self) -> Call:
        draw = self._draw
        values = [round(draw.within(1, 400), 1) for _ in range(draw.between(4, 9))]
        total = sum(values)
        code = f"values = {values}\nmean = sum(values) / len(values)\nprint(f'{{mean:.3f}}', max(values) - min(values))"
        if draw.chance(0.1):
            output = "Traceback (most recent call last):\n  File \"<string>\", line 2\nNameError: name 'value' is not defined"
            return Call(
                tool="python",
                arguments={"code": code.replace("sum(values)", "sum(value)")},
                output=output,
                failed=True,
            )
        output = f"{total / len(values):.3f} {round(max(values) - min(values), 1)}"
        self._memory.note("figure", output.split()[0])
        return Call(tool="python", arguments={"code": code}, output=output)

    def _act(self, calls: Sequence[Call]) -> Act:
        draw = self._draw
        text = self._say(talk.STEPS) if draw.chance(0.2) else ""
        thoughts = (
            draw.some(talk.THOUGHTS, max(1, int(draw.skewed(1.5, 0.9, most=7)))) if draw.chance(0.6) else []
        )
        return Act(
            calls=tuple(calls), text=text, thought=" ".join(self._say((thought,)) for thought in thoughts)
        )

    def _answer(self) -> Tell:
        text = self._say(talk.ANSWERS)
        while self._draw.chance(0.5):
            text += f"\n\n{self._web.paragraph()}"
        return Tell(text=text, thought=self._say(talk.THOUGHTS) if self._draw.chance(0.3) else "")

    def _say(self, templates: Sequence[str], **facts: str) -> str:
        draw, topic, recall = self._draw, self._topic, self._memory.recall
        template = draw.one(templates)
        slots: dict[str, Callable[[], object]] = {
            "topic": lambda: topic.name,
            "term": lambda: draw.one(topic.terms),
            "term2": lambda: draw.one(topic.terms),
            "org": lambda: draw.one(topic.institutions),
            "place": lambda: draw.one(CITIES),
            "year": lambda: draw.between(2012, 2024),
            "count": lambda: draw.between(3, 40),
            "figure": lambda: recall("figure", f"{draw.between(10, 90)} %"),
            "url": lambda: recall("url", "the overview page"),
            "claim": self._web.paragraph,
            "kept": lambda: self._memory.note("rule", draw.one(self._rules)),
            "cjk": lambda: cjk.sentence(draw, draw.one(cjk.LANGUAGES)),
        }
        wanted = {
            slot: give() for slot, give in slots.items() if f"{{{slot}}}" in template and slot not in facts
        }
        text = template.format(**(wanted | facts))
        return text[:1].upper() + text[1:]
