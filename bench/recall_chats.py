"""Long chats on many topics, from seeds: what a person told an assistant over months, and questions about it in other words.

Each topic has facts, each with a statement and two questions that share few words with it; between them the two talk about the
same topics without saying the fact. Everything is written here and by nobody else.
"""

from collections.abc import Iterator
from random import Random

from bench.recall_questions import Question
from lowwater.core.messages import Message, Role, Text

CHATS, ROUNDS = 12, 150

_PLACES = "Lisbon Trondheim Valparaiso Ghent Kraków Hobart Busan Tartu Oaxaca Leeds Izmir Nantes".split()
_NAMES = "Marta Okon Priya Jules Hanne Tomasz Ines Bao Leila Anders Yusuf Greta Mirko Salma".split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_THINGS = (
    "kayak cello greenhouse typewriter telescope tandem sailboat loom kiln accordion beehive printer".split()
)

# topic, statement, questions; {n} a name, {p} a place, {d} a day, {t} a thing, {x} a number
_FACTS = (
    (
        "travel",
        "We booked the ferry to {p}, it leaves on {d} at {x} minutes past six.",
        ("when does our boat trip start", "Which day is the crossing that we reserved?"),
    ),
    (
        "travel",
        "My passport runs out in {x} days, I have to renew it before going to {p}.",
        ("how long is my travel document still valid", "Did I mention when my passport expires?"),
    ),
    (
        "travel",
        "The flat in {p} is on floor {x}, and {n} has the keys.",
        ("who keeps the keys of the apartment that we rented", "Which storey was the rented flat on?"),
    ),
    (
        "family",
        "My sister {n} moved to {p} because of her new job at the museum.",
        ("where is my sister living now", "Why did my sibling change cities?"),
    ),
    (
        "family",
        "{n}, our youngest, is allergic to hazelnuts, not to peanuts.",
        ("what can our youngest child not eat", "Which allergies do we have to think of when baking?"),
    ),
    (
        "family",
        "Grandfather turns {x} on {d}, we are all invited.",
        ("how old is grandpa going to be", "When was the birthday party of my grandfather?"),
    ),
    (
        "health",
        "The doctor put me on {x} milligrams of ibuprofen, twice daily after meals.",
        ("what dosage was I prescribed", "How often should I take the painkiller?"),
    ),
    (
        "health",
        "I ran {x} kilometres on {d} and my left knee started hurting.",
        ("which of my joints hurts after running", "How far did I run when the pain began?"),
    ),
    (
        "money",
        "The landlord raised our rent by {x} euros from next month.",
        ("how much more do we pay for the apartment", "What did the landlord increase?"),
    ),
    (
        "money",
        "I owe {n} {x} euros for the concert tickets.",
        ("to whom do I have debts", "How much were the tickets that I have not paid back?"),
    ),
    (
        "garden",
        "The tomatoes by the wall got blight, so I planted beans there with {n}.",
        ("what disease did my plants have", "What grows next to the wall now?"),
    ),
    (
        "garden",
        "{n} gave me a {t}, it stands behind the shed under a blue cover.",
        ("where did I put the present that I got", "What is under the cover behind my shed?"),
    ),
    (
        "work",
        "Our team's budget was cut to {x} thousand, {n} announced it on {d}.",
        ("who told us about the cuts", "How large is the team's budget after all?"),
    ),
    (
        "work",
        "My new manager is {n}, who came over from the {p} office.",
        ("who is my boss these days", "From which branch did my manager come?"),
    ),
    (
        "work",
        "The release slipped to {d} because {n} found that uploads were retried for ever.",
        ("what delayed our launch", "Which bug did my colleague discover in uploading?"),
    ),
    (
        "hobby",
        "I am building a {t} in the cellar, it will need {x} screws.",
        ("what am I constructing downstairs", "How many screws does my project take?"),
    ),
    (
        "hobby",
        "The choir sings in {p} next spring, {n} conducts.",
        ("where will our concert be", "Who is conducting the choir?"),
    ),
    (
        "hobby",
        "My bicycle's frame number is {x}{x}, the police in {p} wanted it.",
        ("what is the number on the frame of my bike", "Who asked for details about my bicycle?"),
    ),
)
_TALK = {
    "travel": "Packing lists for trips, which bag to take, trains or boats, travel insurance and passports, flats or hotels with a view, the crossing in bad weather.",
    "family": "What to cook when the family comes, presents for children, a birthday card, who sits where, a sister's or a brother's news, baking without nuts.",
    "health": "Stretching before running, how much sleep a person needs, pain in joints and what a doctor may say, taking medicine with or without meals.",
    "money": "Comparing accounts, what rents do in cities, how tickets are priced, saving a little each month, paying friends back in time.",
    "garden": "When to water tomatoes, plants that like walls, covers against frost, beans and peas, sheds and what one keeps behind them.",
    "work": "How to write a note to the team, meetings with a manager, budgets and how they are cut, planning a release, colleagues in other offices.",
    "hobby": "Wood and screws, choirs and what they sing, repairing a bicycle and its frame, building things in a cellar, concerts in spring.",
}
_USER = (
    "Could you help me think about this: {talk}",
    "Just chatting today about the usual: {talk}",
    "What do people generally say on this? {talk}",
)
_ASSISTANT = (
    "Happy to. On {topic}, I would look at it this way: {talk} What matters most to you there?",
    "A few thoughts on {topic}. {talk} Tell me more, and I can be more specific.",
    "That is a good question about {topic}. In general: {talk}",
)
_NOTED = (
    "Thanks for telling me. I will keep that in mind.",
    "Noted. Anything else about {topic}?",
    "Good to know, that helps with {topic}.",
)


def long_chats() -> Iterator[tuple[tuple[Message, ...], tuple[Question, ...]]]:
    """Yield chats of some hundred messages each, with their questions, the same ones every time."""
    for seed in range(CHATS):
        yield _chat(Random(seed))


def _chat(draw: Random) -> tuple[tuple[Message, ...], tuple[Question, ...]]:
    told = draw.sample(range(ROUNDS), len(_FACTS))
    facts = dict(zip(told, draw.sample(_FACTS, len(_FACTS)), strict=True))
    messages: list[Message] = []
    asked: list[tuple[str, int]] = []
    for turn in range(ROUNDS):
        if turn in facts:
            topic, statement, questions = facts[turn]
            values = {
                "n": draw.choice(_NAMES),
                "p": draw.choice(_PLACES),
                "d": draw.choice(_DAYS),
                "t": draw.choice(_THINGS),
                "x": draw.randint(11, 97),
            }
            lead = draw.choice(("By the way: ", "", "Something else. ", "Oh, and before I forget, "))
            messages.append(_said("user", lead + statement.format(**values)))
            asked += [(question, len(messages)) for question in questions]
            messages.append(_said("assistant", draw.choice(_NOTED).format(topic=topic)))
            continue
        topic = draw.choice(sorted(_TALK))
        messages.append(_said("user", draw.choice(_USER).format(talk=_some(draw, topic))))
        messages.append(
            _said("assistant", draw.choice(_ASSISTANT).format(topic=topic, talk=_some(draw, topic)))
        )
    end = len(messages) + 1
    return tuple(messages), tuple(
        Question(wording="told", text=text, before=end, evidence=(number,)) for text, number in asked
    )


def _some(draw: Random, topic: str) -> str:
    """Return some of what there is to say about a topic, in any order."""
    parts = [part.strip(" .") for part in _TALK[topic].split(",")]
    return ", ".join(draw.sample(parts, draw.randint(2, len(parts)))) + "."


def _said(role: Role, text: str) -> Message:
    return Message(role=role, parts=(Text(text=text),))
