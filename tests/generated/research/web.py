"""Web pages and search results about a topic: prose, tables, lists, with figures that can be cited."""

import json

from msgspec import Struct

from tests.generated import cjk
from tests.generated.draw import Draw
from tests.generated.research.topics import Measure, Topic
from tests.generated.words import CITIES, COMPANIES, PEOPLE

# Slots: {term} {term2} {org} {org2} {year} {place} {person} {firm} {metric} {value} {pct} {count}
_SENTENCES = (
    "According to {org}, {metric} reached {value} in {year}, after several years in which it had hardly moved.",
    "{term} is often named as the main obstacle, although the evidence from {place} is thinner than the headlines suggest.",
    "In a survey of {count} projects, {pct} % cited {term} and only a handful {term2}.",
    "{person}, who led the work at {org}, calls the result \u201cencouraging, but not yet a reason to celebrate\u201d.",
    "The comparison with {place} is not quite fair, because {term} is treated differently there.",
    "A reanalysis by {org2} put {metric} closer to {value}, mostly because of stricter assumptions about {term}.",
    "Where {term} was addressed early, costs fell by about {pct} % within three years.",
    "Critics point out that {term2} was left out of the model altogether.",
    "Since {year} the rules have changed twice, and operators such as {firm} had to rewrite their plans.",
    "None of this would matter much if {term} did not interact with {term2}, but it does.",
    "The pilot in {place} ran for {count} days and was stopped when {term} could no longer be guaranteed.",
    "Data before {year} should be read with care: {org} counted {term} under a different heading.",
    "{firm} declined to publish its own figures; an estimate based on permits suggests {value}.",
    "What the averages hide is the spread: the best tenth does {pct} % better than the median.",
    "For {place}, the report recommends starting with {term} and leaving {term2} to a second phase.",
    "There is broad agreement on {term}. There is none on who should pay for it.",
    "{metric} of {value} would have been unthinkable in {year}.",
    "Interviews with {count} practitioners show a gap between what is written about {term} and what is done.",
    "The second round of funding, announced in {place}, is tied to progress on {term2}.",
    "It is too early to say whether the drop to {value} is a trend or noise.",
    "{org} and {org2} have used different baselines since {year}, which explains most of the disagreement.",
    "Small sites are affected more: below a certain size, {term} costs more than it brings.",
    "When asked about {term}, {person} answered that the question was settled long ago, citing {count} field reports.",
    "The authors warn against reading the {pct} % as a promise.",
    "A footnote on page {count} mentions that {term2} accounts for most of the remaining difference.",
)
_TITLES = (
    "{term} in {place}: what {year} has shown", "Why {term} decides", "{org}: annual review {year}", "The case against {term}",
    "{metric} in numbers", "From {place} to {place2}: lessons on {term}", "Questions and answers about {term}", "{term}, ten years on",
)  # fmt: skip
_SITES = ("news", "journal", "blog", "stats", "review", "library", "policy")


class Page(Struct, frozen=True, kw_only=True):
    """A page of the made-up web with the figures it reports."""

    url: str
    title: str
    snippet: str
    text: str
    figures: tuple[str, ...]


class Web:
    """Makes pages about one topic."""

    def __init__(self, draw: Draw, topic: Topic) -> None:
        self._draw = draw
        self._topic = topic
        self._figures: list[str] = []

    def page(self) -> Page:
        """Return a new page."""
        draw = self._draw
        self._figures = []
        title = self._fill(draw.one(_TITLES))
        title = title[:1].upper() + title[1:]
        slug = "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())
        host = draw.one(self._topic.institutions).lower().replace(" ", "-")
        url = f"https://{draw.one(_SITES)}.{host}.example/{draw.between(2014, 2026)}/{slug}-{draw.between(100, 99_999)}"
        text = self._body(title, url)
        return Page(url=url, title=title, snippet=self._sentences(2), text=text, figures=tuple(self._figures))

    def paragraph(self) -> str:
        """Return a few sentences in one paragraph."""
        return self._sentences(self._draw.between(2, 6))

    def _body(self, title: str, url: str) -> str:
        draw = self._draw
        lines = [f"# {title}", "", f"By {draw.one(PEOPLE)} · {draw.between(1, 28)} {draw.one(('March', 'June', 'October'))} "
                 f"{draw.between(2018, 2026)} · {draw.between(3, 24)} min read", "", self.paragraph(), ""]  # fmt: skip
        if draw.chance(0.06):
            language = draw.one(cjk.LANGUAGES)
            lines += [" ".join(cjk.sentence(draw, language) for _ in range(draw.between(8, 30))), ""]
        for _ in range(int(draw.skewed(4, 0.8, most=34))):
            heading = draw.one(self._topic.terms)
            lines += [f"## {heading[:1].upper()}{heading[1:]}", ""]
            for _ in range(draw.between(1, 3)):
                lines += [self.paragraph(), ""]
            match draw.below(5):
                case 0:
                    lines += [*self._table(), ""]
                case 1:
                    lines += [f"- {self._sentences(1)}" for _ in range(draw.between(2, 5))] + [""]
                case 2:
                    lines += [f"> {self._sentences(2)}", ""]
                case _:
                    pass
        return "\n".join(
            [*lines, f"Related: [{draw.one(self._topic.terms)}]({url.rpartition('/')[0]}/{draw.hex(6)})"]
        )

    def _table(self) -> list[str]:
        draw = self._draw
        measures = draw.some(self._topic.measures, 3)
        lines = ["| place | year | " + " | ".join(f"{m.name} ({m.unit or 'ratio'})" for m in measures) + " |"]
        lines.append("|---" * (len(measures) + 2) + "|")
        for place in draw.some(CITIES, draw.between(3, 9)):
            cells = [_figure(draw, measure).removesuffix(measure.unit).strip() for measure in measures]
            lines.append(f"| {place} | {draw.between(2012, 2026)} | {' | '.join(cells)} |")
        return lines

    def _sentences(self, count: int) -> str:
        return " ".join(self._fill(template) for template in self._draw.some(_SENTENCES, count))

    def _fill(self, template: str) -> str:
        draw, topic = self._draw, self._topic
        measure = draw.one(topic.measures)
        value = _figure(draw, measure)
        if "{value}" in template:
            self._figures.append(value)
        place, place2 = draw.some(CITIES, 2)
        term, term2 = draw.some(topic.terms, 2)
        text = template.format(
            term=term, term2=term2, org=draw.one(topic.institutions), org2=draw.one(topic.institutions),
            year=draw.between(2009, 2026), place=place, place2=place2, person=draw.one(PEOPLE), firm=draw.one(COMPANIES),
            metric=measure.name, value=value, pct=draw.between(3, 88), count=draw.between(11, 990),
        )  # fmt: skip
        return text[:1].upper() + text[1:]


def show_results(draw: Draw, pages: list[Page]) -> str:
    """Return search results as a search tool prints them."""
    found = [
        {
            "title": page.title,
            "url": page.url,
            "snippet": page.snippet,
            "score": round(draw.within(0.3, 1), 4),
        }
        for page in pages
    ]
    return json.dumps({"results": found, "took_ms": draw.between(80, 1_900)}, ensure_ascii=False, indent=2)


def _figure(draw: Draw, measure: Measure) -> str:
    value = draw.within(measure.low, measure.high)
    shown = f"{value:,.0f}" if measure.high > 500 else f"{value:.1f}" if measure.high > 9 else f"{value:.2f}"
    return f"{shown} {measure.unit}".strip()
