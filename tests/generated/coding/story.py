"""The course of a coding session: tasks, follow-ups, corrections, long lists of work."""

from collections.abc import Iterator

from tests.generated.coding import arcs, talk
from tests.generated.coding.desk import Desk
from tests.generated.coding.testruns import Failure, break_test, run_tests
from tests.generated.coding.tools import SYSTEM, TOOLS
from tests.generated.draw import Draw
from tests.generated.memory import Memory
from tests.generated.session import Tool
from tests.generated.steps import Act, Ask, Step, Tell

_TASKS = (("fix", 34), ("build", 20), ("investigate", 14), ("rename", 6), ("list", 8), ("review", 12))


class CodingStory:
    """A user and an agent in one repository."""

    tools: tuple[Tool, ...] = TOOLS

    def __init__(self, draw: Draw, memory: Memory) -> None:
        self._draw = draw
        self._desk = desk = Desk(draw, memory)
        self.system = SYSTEM.format(
            name=desk.project.name,
            root=desk.project.root,
            branch=desk.branch,
            language=desk.project.main.language,
            domain=desk.project.domain,
        )

    def steps(self) -> Iterator[Step]:
        """Yield task after task."""
        first = True
        while True:
            self._desk.turn_to()
            yield from self._interrupted(self._task(self._draw.weighted(_TASKS), explore=first))
            first = False
            if self._draw.chance(0.45):
                yield from self._follow_up()

    def closing(self) -> Tell:
        """Return a summary of the work so far."""
        return self._report()

    def _task(self, task: str, *, explore: bool) -> Iterator[Step]:
        desk, draw = self._desk, self._draw
        match task:
            case "build":
                yield Ask(text=desk.say(talk.BUILD, rule=self._rule()))
                work = arcs.build_feature(desk)
            case "investigate":
                yield Ask(text=desk.say(talk.INVESTIGATE, rule=self._rule()))
                work = arcs.investigate(desk)
            case "rename":
                old, new = desk.symbol(), desk.module.dialect.function_name(desk.lexicon.action())
                yield Ask(text=desk.say(talk.RENAME, symbol=old, new=new, rule=self._rule()))
                work = arcs.rename(desk, old, new)
            case "list":
                yield from self._list()
                return
            case "review":
                yield Ask(text=desk.say(talk.REVIEW))
                work = arcs.review(desk, commit=draw.chance(0.7))
            case _:
                failure = break_test(draw, desk.lexicon, desk.workspace, desk.module)
                facts = {"case": failure.case, "error": failure.summary, "function": failure.function}
                yield Ask(text=desk.say(talk.FIX, rule=self._rule(), **facts) + self._pasted(failure))
                work = arcs.fix_test(desk, failure)
        if explore:
            yield from arcs.explore(desk)
        yield from work
        yield self._report()

    def _pasted(self, failure: Failure) -> str:
        """Return the end of a test run as users paste it, or nothing."""
        if not self._draw.chance(0.3):
            return ""
        output = run_tests(self._draw, self._desk.workspace, [failure.module], [failure], verbose=False)
        return f"\n\n```\n{output}\n```"

    def _list(self) -> Iterator[Step]:
        """One prompt, then a long loop of tool calls without another word of the user."""
        desk, draw = self._desk, self._draw
        items = [desk.lexicon.commit() for _ in range(draw.between(3, 6))]
        listed = "\n".join(f"{at}. {item}" for at, item in enumerate(items, start=1))
        yield Ask(text=desk.say(talk.TIDY, items=listed, rule=self._rule()))
        for done in range(len(items)):
            yield desk.act([desk.plan(items, done)], f"item {done + 1}")
            module = desk.turn_to()
            if draw.chance(0.6):
                yield from arcs.fix_test(desk, break_test(draw, desk.lexicon, desk.workspace, module))
            else:
                yield from arcs.build_feature(desk)
            if draw.chance(0.4):
                yield from arcs.review(desk, commit=True)
        yield desk.act([desk.plan(items, len(items))], "the list")
        yield self._report()

    def _follow_up(self) -> Iterator[Step]:
        desk = self._desk
        yield Ask(text=desk.say(talk.FOLLOW_UPS))
        for _ in range(self._draw.below(3)):
            needle = desk.memory.recall("symbol", desk.symbol())
            yield desk.act([desk.search(needle)], f"`{needle}`")
            path = desk.memory.recall("path", desk.module.path)
            yield desk.act([desk.read(path)], f"`{path}`")
        yield self._report()

    def _interrupted(self, steps: Iterator[Step]) -> Iterator[Step]:
        """Let the user speak up now and then while the agent is working."""
        for step in steps:
            yield step
            if isinstance(step, Act) and self._draw.chance(0.025):
                yield Ask(text=self._correction())

    def _correction(self) -> str:
        desk = self._desk
        rule = desk.memory.note("rule", self._draw.one(desk.rules)) if desk.rules else "small steps"
        return desk.say(talk.CORRECTIONS, rule=rule)

    def _rule(self) -> str:
        """Return a rule to end a request with, or nothing."""
        if not self._draw.chance(0.35):
            return ""
        rule = self._desk.say(talk.RULES)
        self._desk.rules.append(self._desk.memory.note("rule", rule[:1].lower() + rule[1:]))
        return f" {self._draw.one(('Please', 'And', 'Important:', 'Note:'))} {self._desk.rules[-1]}."

    def _report(self) -> Tell:
        desk, draw = self._desk, self._draw
        text = desk.say(talk.DONE)
        if draw.chance(0.7):
            points = [desk.say((template,)) for template in draw.some(talk.POINTS, draw.between(2, 6))]
            text += "\n\n" + "\n".join(f"- {point}" for point in points)
        return Tell(text=text, thought=desk.say(talk.THOUGHTS, subject="this") if draw.chance(0.2) else "")
