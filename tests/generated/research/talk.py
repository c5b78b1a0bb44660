"""What people and the model say in a research session."""

OPENINGS = (
    "I need an overview of {topic}: what is known about {term}, what it costs, and who disagrees. {rule}",
    "Please research {term} in the context of {topic}. I am mostly interested in {place} and the time since {year}. {rule}",
    "We are preparing a decision on {topic}. Compare {term} with {term2}, with numbers and sources. {rule}",
)
FOLLOW_UPS = (
    "You wrote {figure}. Which source is that from, and does anyone contradict it?",
    "Thanks. Now look into {term2}, especially in {place}.",
    "How does {figure} compare with what {org} reports?",
    "The page {url} seems important. Read it again and tell me what it says about {term}.",
    "Can you put the figures into a table, oldest first? I miss {figure} in it.",
    "I do not believe {figure}. Check it.",
    "Please extend the report by a section on {term}.",
    "What would change if {term2} were twice as expensive?",
    "Summarise for somebody who has never heard of {term}; two paragraphs, no jargon.",
    "{cjk}",
)
RULES = (
    "Only use sources from {year} or later.",
    "Give every number with its unit and its source.",
    "Leave {org} out: their method is disputed.",
    "Use SI units throughout.",
    "Mark everything that rests on a single source.",
    "Do not cite press releases.",
)
STEPS = (
    "Next I look for {term}.",
    "{org} should have figures on that.",
    "The snippet mentions {figure}; I'll open the page.",
    "Two sources so far. A third would settle it.",
    "I'll write this down before going on.",
    "This contradicts {url}, so both need a closer look.",
)
THOUGHTS = (
    "The user asked about {term}; what I have so far is mostly on {term2}.",
    "{figure} is far from what I noted before. Different baseline, or different year?",
    "The rule still holds: {kept}",
    "{org} is cited everywhere, so the apparent agreement may be one source repeated.",
    "I have {count} figures now. Enough for a first table, not enough for a conclusion.",
    "Before writing I should reread my notes, in particular the entry on {url}.",
    "If {figure} is right, then the cost argument falls apart, because {term} dominates the total.",
)
ANSWERS = (
    "In short: {claim} The figure I trust most is {figure}, from {url}.",
    "The report is in report.md. {claim} Open question: {term2}.",
    "Yes and no. {claim} Against that stands {figure} ({url}).",
    "{claim}\n\nWhat supports this: {figure}, and for {place} the numbers behind {url}. What speaks against it: {term2}.",
    "I checked it again. {figure} is what {url} says; {claim}",
)
