"""What people and the model say in a coding session. Slots in braces are facts; the rest is filled by the lexicon."""

FIX = (
    "`{case}` fails on main with `{error}`. Find out why and fix it.{rule}",
    "CI is red since this morning: {case} in {test_path}. Please fix the cause, not the test.{rule}",
    "We get `{error}` from `{function}` in {path}. Can you look into it?{rule}",
    "{test_path} is broken on my machine and in CI. I think it started when we began to {v} {q} {ns}.{rule}",
    "Something in {path} does not {v} {ns} correctly any more; run the tests and see.{rule}",
)
BUILD = (
    "Add support for {ving} {q} {ns} to `{entity}` in {path}. Respect `{constant}`, and add tests.{rule}",
    "Please write a new module that can {v} a {t}, next to {path}, and use it from `{function}`.{rule}",
    "I want `{function}` to {v} {ns} in batches instead of one by one. {number} per batch should be enough.{rule}",
    "Implement the {t} described in {paper}. Start with {path}.{rule}",
)
RENAME = (
    "Rename `{symbol}` everywhere; it no longer {vs} the {n}. Call it `{new}`.{rule}",
    "`{symbol}` is a bad name. Make it `{new}` in the whole code base, tests included.{rule}",
)
INVESTIGATE = (
    "Production logged `{error}` {d} times last night. Logs are under logs/, the API answers on port {number}. What happened?{rule}",
    "A customer says their {n} is {q} since yesterday. Check the {n2} service, start with the log of {day}.{rule}",
    "Why is {ving} so slow? p95 went from {d} ms to {number} ms after the last deploy.{rule}",
)
TIDY = (
    "Go through these one after the other without asking me in between:\n{items}\nTell me when all of it is done and green.{rule}",
    "I am away for the afternoon. Please work through the list, committing after each item:\n{items}{rule}",
)
REVIEW = (
    "Show me what changed so far, then commit it.",
    "Before we go on: is the tree clean? Commit what belongs together.",
    "Please review your own diff once more and commit.",
    "What does the diff look like now? I want to read it before you commit.",
)
FOLLOW_UPS = (
    "Good. And `{symbol}` that you looked at earlier, does it have the same problem?",
    "Thanks. Back to {old_path}: the `{error}` from before, is that gone too?",
    "One more thing: the value {number} we saw earlier, where is that set?",
    "Does the change affect {old_path}? I remember `{symbol}` being called from there.",
    "ok, now do the same in {old_path}",
    "I compared with {id}: there it worked. What is different for `{symbol}`?",
)
CORRECTIONS = (
    "No, leave {path} as it was; the problem is in `{symbol}`.",
    "Stop, that is the wrong file. I meant {path}.",
    "Please do not {v} in `{symbol}`: the {n} already does that.",
    "wait, you forgot what I said: {rule}",
    "That is not what I asked for. Only change what `{symbol}` returns, nothing else in {path}.",
    "Undo the last edit, it breaks the {t}.",
)
RULES = (
    "do not touch {paper}",
    "always use `{symbol}` instead of calling the {n} directly",
    "keep {constant} at {value}",
    "never log the {n}",
    "no new dependencies",
    "every public function needs a doc comment that names the {n}",
    "run only the tests of {folder}, the whole suite takes too long",
    "write commit subjects in lower case and mention the {n}",
    "{path} is owned by another team, so leave it alone",
)
LOOKING = (
    "Let me look at {subject}.",
    "I'll start with {subject} to see how {ns} are {ved}.",
    "Next, {subject}.",
    "Checking {subject} for anything that {vs} the {n}.",
    "{subject} should tell where the {q} {n} comes from.",
    "To be sure, I'll read {subject} again.",
    "That explains the {n}. Now {subject}.",
    "Found it. I'll change {subject} so that {q} {ns} are {ved} first.",
    "Now the {n}: {subject}.",
    "The {t} looks fine, so on to {subject}.",
)
THOUGHTS = (
    "The user wants the {t} {ved} without changing {ns}.",
    "{subject} is the obvious place, but the {n} could also be {ved} by the {t}.",
    "If `{symbol}` gets a {q} {n}, it {vs} it before the {n2} is {q}. That would give exactly this result.",
    "Earlier I saw `{symbol}` in {old_path}; it may share the cause.",
    "I should keep in mind: {kept}.",
    "The number {number} came up before. It cannot be a coincidence that the {n} is {d}.",
    "Option one is to {v} in the caller, option two to {v2} inside `{symbol}`. The second is smaller.",
    "I need to check whether anything else {vs} {q} {ns} before I change this.",
    "The error before was `{error}`. If my reading is right, {ving} the {n} first removes it.",
    "Let me not guess: the code is there to be read.",
    "There are {d} places that {v} a {n}. Most of them pass a {q} one.",
    "After that I run the tests for the {n2} again.",
    "Hmm, {remark}. So the {n} can be {q} at this point, which nobody expects.",
    "The {q} branch is never taken when the {n} is {ved} by the {t}, which is why the test did not see it.",
)
DONE = (
    "Done. {remark}.",
    "Fixed: {remark}.",
    "This is finished; all checks pass.",
    "That was it. The cause was simple in the end: {remark}.",
    "All green now.",
    "Finished. A short summary:",
)
POINTS = (
    "`{path}`: {remark}",
    "`{symbol}` now {vs} the {q} {n} before it is {ved}",
    "the limit stays at {number}, as before",
    "`{error}` no longer occurs, because {remark}",
    "I left {old_path} alone ({kept})",
    "a test covers {q} {ns} and the {t}",
    "not done: {ving} {q} {ns}, which would need a change in {old_path}",
)
