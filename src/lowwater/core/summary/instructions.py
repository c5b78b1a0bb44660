"""Recognising standing instructions: what the user lays down for the rest of the session, rather than asks for now.

An instruction is a sentence of the user that tells the agent how to go on: what it must not do, when to ask, in which form to
answer, what to use, where to stay. Its form gives it away: an imperative or a modal that is addressed to the agent, together
with a negation, a limit, or an adverbial that says for how long or how often. A request has the imperative only, and a
requirement of the product has a subject of its own.
"""

import re
from collections.abc import Iterator

from lowwater.core.summary.typed_text import judged_form, typed_sentences

_SHORTEST, _LONGEST = 8, 500
"""Characters of a sentence that may be an instruction."""
_MOST = 12
"""A message with more of them is a document that was pasted."""


def standing_instructions(words: str) -> tuple[str, ...]:
    """Return the sentences of `words`, what a user typed, that are standing instructions; each as it was said.

    One that says what it is about in the sentence before ("I hate adverbs. Avoid them.") comes with that sentence.
    """
    found: list[str] = []
    before = ""
    for sentence in typed_sentences(words):
        if is_instruction(sentence):
            both = f"{before} {sentence}"
            found.append(both if _POINTS_BACK.match(sentence) and before and both in words else sentence)
        before = sentence
    return tuple(dict.fromkeys(found)) if len(found) <= _MOST else ()


def is_instruction(sentence: str) -> bool:
    """Return whether a sentence tells the agent how to go on from here."""
    if not _SHORTEST // 2 <= len(sentence) <= _LONGEST:
        return False
    text = judged_form(sentence).replace("’", "'")
    if _FOREIGN.search(text) is not None and _FOREIGN_PASSING.search(text) is None:
        return True
    if len(sentence) < _SHORTEST or _DEBRIS.search(text):
        return False
    return any(_lays_down(part) for part in _RUN_ON.split(text))


def _lays_down(text: str) -> bool:
    if _PASSING.search(text):
        return False
    if _ASKS.search(text) and not _ASKS_FOR_WORD.search(text):
        return False
    if _REQUIRES.search(text) and not _TO_THE_AGENT.search(text):
        return False
    if _OF_ONE_STEP.search(text):
        return False
    if any(form.search(text) for form in _OPENING):
        return True
    return any(form.search(clause) for clause in _clauses(text) for form in _FORMS)


def replaces_earlier(instruction: str) -> bool:
    """Return whether an instruction says that an earlier one no longer holds."""
    return _REPLACES.search(instruction.replace("’", "'")) is not None


# The forms

_RUN_ON = re.compile(
    r"\s+(?=(?:oh|btw|also|ps)\b,?\s+(?:and\s+)?(?:please\s+)?(?:do\ not|don'?t|never|always)\b)",
    re.IGNORECASE,
)
"""Where another sentence begins that was typed without a full stop before it."""
_CLAUSE = re.compile(
    r"\s*(?:[;:—–]|,(?=\s)|\.\s|\s-\s|\((?=\w)|\)|\b(?:and|but|so|then|though)\b(?=\s))\s*", re.IGNORECASE
)
_LEAD = r"""(?:(?:ok(?:ay)?|so|and|but|also|just|please|pls|plz|btw|actually|again|though|well|now|remember|note|yes|no|hey|k|kk|cool|nice|thx|thanks|alright|fine|good|great|hmm?|go\ ahead|sounds\ good|right|
    omfg|dude|then|oh|or|while\ (?:we|you)'?re?\ (?:are\ )?(?:here|at\ it)|to\ be\ clear|one\ (?:more\ )?thing|important(?:ly)?)[,:!.]?\s+)*"""
_NOT_YET = r"\b(?:yet|for\ now|right\ now|(?<!from\ )now(?!\ on)|first|this\ time|here\ yet|at\ the\ moment|today|until\ i(?!\ (?:say|tell|explicitly|give|lift|change)))\b"


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("{LEAD}", _LEAD), re.VERBOSE | re.IGNORECASE)


def _forms(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(map(_compiled, patterns))


_POINTS_BACK = _compiled(
    r"""^{LEAD}(?:(?:do\ not|don'?t|never|always)\ (?:ever\ )?)?(?:stop\ (?:doing|using|adding)|avoid|use|do|keep|leave|ask\ for)\ (?:them|it|that|this|those|each\ one)\b"""
)
"""An instruction that names what it is about in the sentence before."""
_DEBRIS = re.compile(
    r"\\n|^\W+$|^[\w./-]+:\d+|^[A-Z_]+=|\b[0-9a-f]{12,}\b|^(?:error|warning|fatal|fail)\b|^[\w.]*(?:error|exception|warning):",
    re.IGNORECASE,
)
_PASSING = _compiled(
    r"""(?: (?:\b(?:not|dont|only|leave|keep|no)|n't)\b .{0,60}"""
    + _NOT_YET
    + r""" | ^{LEAD}(?:why|how|what|who|where|does|did|is|are|was|were|has|have|had)\b
    | ^{LEAD}if\ (?!you|something|anything|in\ doubt|un(?:sure|certain|clear)|i\b|(?:an?|any\w*|some\w*|there)\b.*,.*\b(?:me|us|my|yourself)\b)
    | ^{LEAD}(?:do\ not|don'?t)\ \w+\ .{2,40}\ here,\ (?!we\b|i\b|it\b|this\b)\w+
    | ^{LEAD}(?:whenever|when|(?:each|every|any)\ time)\ i\b(?!.*,\ (?:please|always|never|you|do|don'?t|then|just|run|show|tell|ask|give|use|write|answer|stop)\b) ) """
)
"""What holds for this step only, and questions."""
_ASKS = _compiled(
    r"""\?$ | ^{LEAD}(?:can|could|should|would|will|shall|do|may)\ (?:you|we|i|this|it|the)\b"""
)
_ASKS_FOR_WORD = _compiled(
    r"""\b(?:let|tell|ask)\ me\b.{0,60}\bbefore\b | \b(?:can|could|would|will)\s+(?:you|we)\b.{0,60}\bbefore\s+(?:you\ )?(?:\w+ing\b|do\b|proceed) | \b(?:can|could|shall)\ (?:we|you)\ (?:please\ )?(?:stick|always|never|stop|avoid)\b"""
)

_ONGOING = r"""(?:session|conversation|chat|project|repo(?:sitory)?|codebase|folder|director(?:y|ies)|machine|server|account|book|series|thesis|manuscript|kind|sort|rule|style)"""
"""What lasts as long as the session does: a prohibition in it is no prohibition in one step."""
_PROTECTS = r"""(?:touch|change|edit|modify|alter|delete|remove|rename|move|overwrite|break|share|disclose|reveal|push|publish|deploy|commit|install|use|run)"""
_OF_ONE_STEP = _compiled(
    r"""^{LEAD}(?:do\ not|don'?t|avoid|leave\ out|only|no)\b.{2,80}\b(?:in|for|from|on|of|with|to)\ this\ (?!"""
    + _ONGOING
    + r"""\b)\w+
    | ^{LEAD}(?:do\ not|don'?t)\ .{2,80},\s*(?:(?:just|simply)\ \w+|only\ the)\b
    | ^{LEAD}(?:do\ not|don'?t)\ (?!"""
    + _PROTECTS
    + r"""\b)\w+\ (?:(?:this|that|these|those)\ (?!"""
    + _ONGOING
    + r"""\b)\w|the\ (?:first|second|third|last|next|whole|entire|rest|old|previous)\b)"""
)
"""A prohibition, or a limit, in what is done now: in this one text or change, or beside what is to be done instead."""

_ACTORS = r"""(?: users?|customers?|clients?|visitors?|guests?|admins?|administrators?|members?|subscribers?|buyers?|sellers?|players?|patients?|employees?|contributors?|developers?|maintainers?|teams?|people|someone|somebody|anyone|anybody|they
    |requests?|responses?|endpoints?|apis?|servers?|services?|backends?|frontends?|apps?|applications?|system|gateways?|workers?|jobs?|queues?|caches?|databases?|daemons?|programs?|process(?:es)?|threads?|connections?|devices?|browsers?|sites?|websites?|cli|library|sdk|plugins?|bots?
    |pages?|screens?|views?|buttons?|forms?|fields?|inputs?|modals?|dialogs?|banners?|menus?|links?|widgets?|layouts?|columns?|rows?|cells?|lists?|cursors?|prompts?
    |sessions?|cookies?|tokens?|passwords?|logins?|log-?ins?|log-?outs?|accounts?|profiles?|records?|entries|orders?|carts?|payments?|invoices?|prices?|totals?|balances?|uploads?|downloads?|notifications?|emails?|e-mails?|attempts?|retries|timeouts?|limits?|values?|methods?|class(?:es)?|parsers?|importers?|exporters? )"""
_MODAL = r"(?:must|should|shall|may|might|can|could|will|would|cannot|gets?|never|always|only|(?:has|have|needs?|ought|is|are)(?:\ \w+)?\ to)"
_SHOWS = r"(?:show|display|render|redirect|return|throw|raise|emit|respond\ with|accept|reject|allow|deny|expire|encrypt|hash|cache|retry|validate|escape|truncate|round|sort|highlight|disable|enable|hide)"


_SCOPE = r"""(?: from\ (?:now|here)\ on(?:wards?)? | (?:from|as\ of)\ (?:now(?!\ on)|today|this\ \w+) | going\ forwards? | in\ (?:the\ )?future | henceforth
    | for\ the\ (?:rest|remainder)\ of\ | until\ (?:further\ notice|i\ (?:say|tell)) | at\ all\ times | under\ (?:no|any)\ circumstances
    | throughout\b | in\ everything\ | in\ this\ session | from\ (?:chapter|version|page|section|step|part|tomorrow|then)\b.{0,20}\bon(?:wards?)?\b
    | (?:whatever\ happens|no\ matter\ what|in\ general|as\ a\ (?:general\ )?rule|as\ a\ matter\ of\ principle)\b )"""
_SUBJECT = r"(?!,?\ (?:the|an?|our|its)\ [\w-]+(?:\ [\w-]+)?\ (?:[a-z]+s|is|are|will|has|have)\b)"
"""What follows an adverbial that does not address the agent: a subject of its own, with its verb."""
_EACH = r"""(?: (?:each|every|any)\ ?time | whenever | after\ (?:each|every|any)\b | before\ (?:each|every|any)\b | with\ (?:each|every)\b | on\ (?:each|every)\b | in\ (?:each|every|all)\b
    | as\ soon\ as\ (?:you|something|anything|a)\b )"""
_VERBS = r"""(?: add|address|answer|ask|attach|base|begin|book|build|bump|call|change|charge|check|cite|commit|confirm|cut|delete|describe|document|do|edit|end|escalate|exclude|explain|flag|fix|follow|format|generate|give|group|hand|ignore|include|install|interrupt
    |keep|leave|limit|link|list|log|make|mark|mention|merge|modify|name|note|open|pick|pause|prefer|present|print|propose|provide|push|put|quote|read|rebase|refactor|refer|regenerate|remember|remove|rename|reply|report
    |request|respond|revert|rewrite|run|say|search|send|show|sign|skip|speak|squash|start|stay|stick|stop|store|summari[sz]e|talk|tell|test|touch|treat|try|update|use|wait|work|write|avoid )"""
_OUTPUT = r"""(?: answers?|repl(?:y|ies)|responses?|output|explanations?|summar(?:y|ies)|messages?|commits?|comments?|docs?|documentation|pull\ requests?|prs?|branch(?:es)?|tests?|functions?|names?|logs?|files?|code|texts?|reports? )"""
_LANGUAGE = r"""(?: english|british|american|german|french|spanish|italian|portuguese|dutch|polish|russian|ukrainian|turkish|arabic|hindi|chinese|mandarin|japanese|korean|swedish|danish|norwegian|finnish|czech|greek|hebrew )"""

_NEGATED = r"""^{LEAD}(?:do\ not|don'?t|never)\s+(?:ever\s+)?(?!(?:know|think|see|understand|care|believe|remember|recall|want|need|have|get|mind|worry
    |like|bother|seem|feel|forget|we\b|you\b|i\b|they\b|\w+ed\b))\w+"""

_REQUIRES = _compiled(
    r"""^{LEAD}(?:(?:the|an?|our|each|every|any|all|no|both|this|that|these|those|a\ single)\ )?(?:(?!(?:on|of|in|for|with|from|to|at|by|about|that|which|and|or)\ )[\w'/-]+\ ){0,3}?"""
    + _ACTORS
    + r"""(?:\ (?:that|which|who|of|in|on|for|with|from|without|to|at|by)\b.{0,60}?)?(?:n't)?\ """
    + _MODAL
    + r"""\b | ^{LEAD}(?:if|when(?:ever)?|once|each\ time|every\ time|any\ time|as\ soon\ as|after|before|until|unless)\ (?:an?|the|no|any|each|every|some|two|multiple)?\ ?(?:[\w'/-]+\ ){0,2}?"""
    + _ACTORS
    + r"""\b | ^{LEAD}(?:(?:do\ not|don'?t|never|always)\ (?:ever\ )?|make\ sure\ (?:to\ )?(?:always\ |never\ )?)"""
    + _SHOWS
    + r"""\b | ^{LEAD}(?:if|when)\b.{2,80},\s*(?:then\ |always\ |please\ )?"""
    + _SHOWS
    + r"""\b | ^{LEAD}(?:implement|add|build|create|introduce|support|write|develop|design)\b[^:,;]*(?::|\b(?:that|which|where|so\ that)\b)"""
    + r""" | ^{LEAD}(?:write|translate|put)\ (?:it|this|that|them|the\ [\w\ ]{2,30}\ (?:of|on|for|in)\ the)\b | ^{LEAD}the\ (?:report|summary|message|text|output|name|file|test|log|function|answer)\ (?:must|should|shall|may|has\ to)\b"""
)
"""What the product has to do: a subject of the product's, with a modal or in a condition, or what only a program does."""
_TO_THE_AGENT = _compiled(
    r"""\b(?:you|your|yourself|me|my|mine|i)\b | \b(?:in|from)\ (?:this|our)\ (?:session|conversation|chat|repo(?:sitory)?|project|codebase)\b | \bfrom\ now\ on\b | \bgoing\ forward\b
    | \b(?:have|has|need|needs|get|gets|have\ to\ have|must\ have)\ (?:an?|its|their)?\ ?(?:\w+\ )?(?:tests?|changelog|docs?|documentation|docstrings?|type\ hints?|review)\b"""
)
"""What nobody says of a product."""

_OPENING = _forms(
    # A prohibition that is a sentence of its own; one that qualifies a request ("…, but do not commit it") holds for that request.
    _NEGATED + r"""(?!\s+(?:it|that|this|them)\b)\s+(?!(?:and|or|but|so|if|because)\b)\S""",
    r"""^{LEAD}you\ (?:may|are\ (?:allowed|free)\ to)\ \w+|\bi\ allow\ you\ to\b""",
    r"""^{LEAD}nothing\ (?:from|in|outside)\b""",
)
"""Forms that count at the beginning of a sentence only."""

_FORMS = _forms(
    # Prohibitions
    _NEGATED
    + r"""\s+.{0,60}?\b(?:any(?!\s?more)\w*|ever|again|stuff|things|unless|without|or\ similar|new|more\ than|by\ the\ wayside)\b""",
    r"""^{LEAD}(?:do\ not|don'?t|never)\s+\w+,\ ever\b|\bunder\ no\ circumstances\b""",
    r"""\bi\ (?:do\ not|don'?t|never)\ (?:want|need)\ (?:you\ to\b|any\b|to\ include\b|(?:\w+\ )?insurance\b)|\bi\ want\ no\b""",
    r"""\byou\ (?:must|may|should|shall)(?:\ ?n[o']t|\ never)\b(?!\ (?:right|correct|wrong|sure|know))""",
    r"""^{LEAD}no\s+(?!need|problem|worries|idea|wait|more|longer|one|thanks|"""
    + _VERBS
    + r"""\b)(?:[\w-]+\s+){0,3}?(?:\w+(?:ing|[^s]s|es|ies)|code\ changes?)(?:!|\.|$|,|\s(?:and|or|of|in|unless|pls|please)\b)""",
    r"""^{LEAD}(?:stay|keep)\s+(?:out|away|off|clear)\b|\bhands\ off\b|\boff[ -]limits\b|\bout\ of\ scope\b|\b(?:not|isn't)\ (?:ours|yours)\ to\b""",
    r"""^{LEAD}(?:avoid|refrain\ from|stop)\s+\w+ing\b""",
    r"""^{LEAD}leave\s+.{2,60}\b(?:alone|untouched|unchanged|(?:exactly\ )?as\ (?:is|it\ is|they\ are))\b""",
    r"""\bmust(?:\ not|n't)\s+(?:be\ )?(?:appear|leak|leave|edited|touched|changed|committed|pushed|logged|exceed)""",
    r"""\bwithout\ (?:asking|telling)\ me\b|\bwithout\ my\ (?:okay|ok|approval|consent|permission)\b""",
    r"""\b(?:no|not|don'?t|without|keep|stay|remain|preserve)\b.{0,30}\bbackwards?[ -]compatib(?!\w+\ to\b)""",
    r"""^{LEAD}no\ more\ (?!(?:questions?|issues?|errors?|problems?|time|work|need|than|changes)\b)[\w-]+(?:\ [\w-]+){0,2}(?:$|[.!,;]|\ (?:please|pls|in|at|unless)\b)""",
    r"""^{LEAD}no\ (?!(?:errors?|luck|ideas?|issues?|problems?|changes?|differences?)\b).{2,50}\b(?:anywhere|whatsoever|ever|in\ (?:this|our|my)\ (?:book|project|repo(?:sitory)?|codebase|series|manuscript|thesis))\b""",
    r"""^{LEAD}nothing\ (?:(?:that|which)\ (?:needs?|requires?|uses?|depends?|breaks?|changes?|costs?|touches|relies)|newer|older|heavier|fancier)\b""",
    r"""\b(?:is|are|stays?|remains?)\ (?:read-only|frozen|locked|final|closed)\ (?:for|to)\ you\b""",
    r"""\bi\ (?:do\ not|don'?t)\ want\ to\ .{2,40}\b(?:before|after|more\ than|less\ than|any\w*|without|ever)\b""",
    r"""^{LEAD}let'?s\ (?:not|never)\b.{2,60}\b(?:all|any\w*|every\w*|ever)\b""",
    # Asking first
    r"""^{LEAD}(?:ask|check\ with|tell|consult|warn|notify|let)\ me\b.{0,60}\b(?:before|first)\b|\bcheck\ with\ me\b""",
    r"""\bbefore\ (?:you\ )?\w+\b.{0,60}\b(?:wait\ for|ask|get|tell|check\ with|let)\ (?:me|my)\b(?!\ (?:look|see|find|think|try|grab|check|how|which|whether|why|if|where|who|when)\b)""",
    r"""\bbefore\ (?:you\ )?\w+\ (?:any\w*|something|an?|new|another|each|every|files|code|tests)\b.{0,60},\s*(?:please\ )?"""
    + _VERBS
    + r"""\b""",
    r"""\b(?:goes|go|comes?|passes)\ (?:through|past|via|by)\ me\b|\bneeds?\ my\ (?:\w+\ )?(?:confirmation|consent|go-?ahead|nod|yes)\b|,\s*i\ decide\b|\bwait\ for\ my\ (?:ok(?:ay)?|go|go-?ahead|approval|confirmation|yes|word)\b""",
    r"""\blet\ me\ know\b.{0,60}\bbefore\ (?:you\ )?(?:do|chang|mak|proceed|go|commit)""",
    r"""\brun\ (?:it|this|that|them|any\w*|every\w*)\ (?:by|past)\ me\b|\b(?:needs?|requires?)\ my\ (?:approval|okay|ok|review|permission|sign[ -]?off)\b|\bonly\ (?:when|if|after)\ i\b""",
    r"""\bno\ need\ to\ (?:ask|stay|keep|maintain|preserve|support|confirm|check\ with|be|remain)\b|\byou\ (?:need\ not|needn'?t|(?:do\ not|don'?t)\ (?:need|have)\ to)\ (?:ask|check\ with|confirm|tell|explain|wait)\b""",
    # Things in general: a condition on any of a kind, and what is to be done with each
    r"""^{LEAD}(?:if|when(?:ever)?|once|as\ soon\ as)\ (?:an?|any\w*|some\w*|there(?:'s|\ is))\b.{2,80},\s*(?:please\ |then\ |always\ |just\ )?(?:do\ not|don'?t|never|"""
    + _VERBS
    + r""")\b.{0,80}\b(?:me|us|my)\b""",
    r"""^{LEAD}(?:if|when)\ (?:un(?:sure|certain|clear)|not\ sure)\b.{0,60},""",
    r"""^{LEAD}"""
    + _VERBS
    + r"""\b.{0,80}\b(?:for|to|in|with|of|on|after|before|below|beneath)\ (?:every|each|any|all)\ (?:the\ |of\ the\ |your\ |my\ |our\ )?[\w-]+(?:\ [\w-]+)?\ (?:that\ )?(?:you|i)\ (?!may\b|might\b|just\b|already\b|agree\b)[a-z]+(?!ed\b)\b""",
    r"""^{LEAD}"""
    + _VERBS
    + r"""\b.{0,80}\b(?:every|each)\ (?:answer|reply|response|message|draft|turn|round|iteration|suggestion)\b|^{LEAD}(?:cite|give\ me|show\ me|offer\ me)\b.{0,60}\bevery\ [\w-]+""",
    r"""^{LEAD}unless\ (?:i|you|we|otherwise|told|asked)\b.{2,80},\s*(?:please\ )?(?:do\ not|don'?t|never|no|you|"""
    + _VERBS
    + r""")\b""",
    r"""^{LEAD}(?!(?:i|it|he|she|they|we|you|this|that|there|the)\b).{2,80}\bunless\ (?:i\ (?:say|ask|tell|explicitly)|asked|told|otherwise|explicitly)\b""",
    r"""^{LEAD}(?:all|every|each|any)\ [\w-]+(?:\ [\w-]+)?\ (?:in|as|without|with|under|below)\ [^.]{2,40}\b(?:please|always|no\ exceptions)\b""",
    r"""^{LEAD}only\ [\w\ -]{3,50}\ (?:counts?|qualif(?:y|ies)|(?:is|are)\ (?:allowed|acceptable|welcome))\b""",
    r"""^{LEAD}(?!(?:i|it|he|she|they|we|you|this|that|there|the|which|why|what|where|how)\b)[^,]{3,60},\s*(?:always|throughout|everywhere|no\ exceptions|without\ exception|at\ all\ times|(?:in|for)\ (?:every|all)\w*(?:\ \w+){0,2})[.!]*$""",
    r"""^{LEAD}(?:let'?s\ |we\ )?agreed?\ (?:on\ this|that\ (?:you|we))\b|\bmake\ it\ (?:a|your)\ (?:habit|rule)\b|\b(?:new|ground|house|golden)\ rules?\s*[:,]|^{LEAD}(?:the\ )?rules?(?:\ (?:is|are))?\s*:""",
    r"""^{LEAD}(?:keep|use|write|stay|stick|leave|follow|refer|address|speak|spell|format)\b.{0,80}\b(?:across|through|in)\ (?:all|every|each)\b|^{LEAD}keep\ (?:that|this|it)\ up\ (?:through|for|until|in)\b""",
    # Complaints of what the agent does again and again
    r"""\b(?:i|we)(?:'ve|\ have)?\ (?:already\ |just\ |repeatedly\ )?(?:told|asked|instructed|reminded)\ you\ (?:[\w\ ]{1,20}\ )?(?:not\ to|never\ to|to\ (?:always|never|stop|only))\b""",
    r"""^{LEAD}you\ keep\ (?:on\ )?\w+ing\b""",
    r"""^{LEAD}your\ (?:drafts|answers|replies|responses|messages|summaries|texts|explanations|commits|commit\ messages)\ are\ (?:\w+\ )?too\b""",
    # From now on, and each time
    r"""^{LEAD}""" + _SCOPE + _SUBJECT + r""".{0,80}\b(?:""" + _VERBS + r"""|we|you|no|i)\b""",
    r"""^{LEAD}"""
    + _VERBS
    + r"""\b.{0,120}\b(?:from\ (?:now|here)\ on|going\ forwards?|for\ the\ rest\ of|in\ (?:the\ )?future|at\ all\ times|throughout|wherever\ (?:you|possible)|whatever\ you)\b""",
    r"""^{LEAD}always\b\s+\w+|\balways\ """ + _VERBS + r"""\b(?!.{0,20}\bso\b)""",
    r"""^{LEAD}""" + _EACH + r""".{0,100}(?:,\s*|\s)(?:always\ |please\ )?""" + _VERBS + r"""\b""",
    r"""^{LEAD}(?:if|when)\ (?:you(?!(?:'re|\ are)\ (?:done|ready|finished)|\ have\b|\ can\b)|something|anything|in\ doubt)\b.{2,100},\s*(?:please\ |then\ |always\ )?"""
    + _VERBS
    + r"""\b""",
    r"""^{LEAD}"""
    + _VERBS
    + r"""\b.{0,80}\b(?:each|every|any)\ (?:time|step|change|commit|fix|task|edit|file|function|meaningful|payment)\b|^{LEAD}"""
    + _VERBS
    + r"""\b.{0,80}\bwhen(?:ever)?\ you\b""",
    r"""^{LEAD}(?:every|each|all|any)\ (?:\w+\ ){1,5}(?:gets?|ha(?:s|ve)\ to|must(?!\ include)|needs\ my|shall|(?:should|can|may)(?:\ not)?\ be)\b""",
    r"""\bfor\ (?:any|all|every|each)(?:thing)?\b.{0,40}\b(?:needed|we\ use)\b""",
    r"""^{LEAD}make\ sure\ (?:that\ )?(?:each|every|all\ your|no|nothing|never|you\ (?:always|never))\b""",
    r"""\bkeep\ (?:going|working)\ until\b|\b(?:do|make)\ meaningful\ commits\b|\bcommit\w*\ as\ you\ go\b|^{LEAD}fix\ up\ any\b""",
    r"""^{LEAD}(?:run|do|keep|put|write|execute|test|build|log|store)\ everything\ (?:inside|in|within|through|via|with|under|on)\b""",
    # Preferences, languages and formats
    r"""\bi(?:'d|\ would)?\ (?:strongly\ )?prefer\b(?!\ (?:that|this|it|these|those|option|if\ you\ could|the\ (?:first|second|third|fourth|last|other|former|latter|old|new|\w+\ (?:one|option|version|approach))|your)\b)|^{LEAD}prefer\ \w+""",
    r"""\bi(?:'d|\ would)\ (?:much\ )?rather\ (?:we|you|not)\b""",
    r"""\bi\ (?:really\ )?(?:hate|can'?t\ stand|detest|dislike|(?:don'?t|do\ not)\ like)\ (?!(?:it|that|this|the|these|those|how|what|when|your|my|his|her|its)\b)(?:[\w-]+\ )?[\w-]+(?:[^s]s|ing)[.!]*$""",
    r"""\bstick\ (?:to|with)\ (?!(?:this|that|it|them|option|plan|number|version|the\ (?:first|second|third|last|current|plan|approach)|\#?\d|[a-e]\b))""",
    r"""^{LEAD}call\ me\b(?!\ (?:back|at|on|when|if|tomorrow|today|later|once|after|in|under)\b)|^{LEAD}(?:refer\ to|address)\ .{2,40}\bas\b|^{LEAD}(?:speak|talk|reply|answer|respond|write)\ to\ me\ (?:only\ )?in\b""",
    r"""^{LEAD}(?:rather\ than|instead\ of)\ \w+ing\b[^,]{0,60},\s*(?:please\ )?"""
    + _VERBS
    + r"""\b.{0,60}\b(?:you|me|my)\b""",
    r"""\b(?:is|are)\ always\ to\ be\ (?:written|spelled|named|called|cited|formatted)\b""",
    r"""^{LEAD}keep\ (?:each|every|all|them|your|everything|answers|replies)\b.{0,40}\b(?:under|below|within|at\ most|short(?:er)?|brief|concise|formal|informal|plain)\b""",
    r"""^{LEAD}(?:use|run|take|write)\s+[^,]{1,50}?(?:,\s*(?:not|never)\b|,?\s(?:instead\ of|rather\ than)\b)|^{LEAD}use\ \S+(?:\ \S+){0,4},\ no\ \w+|\bstick\ (?:to|with)\ the\ (?:workflow|convention|style|standard)""",
    r"""\bwe\ (?:always\ |never\ )?(?:use|name|write|put|prefer)\b.{2,60}(?:,\ not|\bnever|\brather\ than|\binstead\ of)\b""",
    r"""\b(?:use|write|answer|reply|respond|speak|talk|keep|docs|comments)\b.{0,60}\b"""
    + _LANGUAGE
    + r"""\b(?!\ (?:customers?|users?|translation|version|page|text|locale))""",
    r"""\b(?:have|has|must)\ to\ be\ """ + _LANGUAGE + r"""\b""",
    r"""^{LEAD}keep\ (?:your|each|every|our|the\ client)\b|^{LEAD}keep\ .{2,50}\b(?:out\ of|to\ one|under|below|confidential|private)\b""",
    r"""^{LEAD}(?:begin|start|end|prefix|sign)\ (?:each|every|all|your)\b|^{LEAD}treat\ .{2,60}\bas\b|\bin\ your\ (?:answers|replies|responses)\b|^{LEAD}only\ show\ me\b""",
    r"""^{LEAD}keep\ (?:to\ )?(?:that|this|the\ same|the\ existing|the\ current)\ (?:style|format|convention|approach)\b(?!\ (?:of|if)\b)""",
    r"""^{LEAD}not\ as\ an?\ .{2,40},?\ but\ as\b""",
    r"""^{LEAD}use\ \S+(?:\ \S+){0,3}\ (?:for|to|when(?:ever)?)\ (?:you\ )?(?:(?:run|build|test|lint|format|commit|install|search|deploy|debug)(?:\w?ing)?|all|any\w*|every\w*)\b""",
    r"""\b(?:we|you)\ should\ (?:be\ )?(?:using|use|prefer|avoid)\b.{2,80}\b(?:wherever|everywhere|whenever)\b|\bmake\ sure\ (?:that\ )?(?:we|you)(?:'re|\ are)\ (?:always\ )?\w+ing\b.{2,60}\b(?:wherever|everywhere|always|throughout)\b""",
    r"""\bremember\ (?:also\ )?(?:that\ )?you\ (?:must|should|can|may|have\ to)\b""",
    # Limits and scope
    r"""^{LEAD}"""
    + _OUTPUT
    + r"""\ (?:must|may|should|shall|have\ to)(?:\ not|n't|\ only|\ never)?\b.{0,80}\b(?:at\ most|longer\ than|more\ than|stay|free\ of|lines)\b""",
    r"""^{LEAD}(?:only\ (?:work|touch|change|edit|look|use|write|commit|read|modify)\b|(?:limit|confine|restrict)\ yourself).{0,80}""",
    r"""^{LEAD}max(?:imum)?\.?\s+(?:of\ )?\w+\ .{0,30}\bper\b|\b(?:at\ most|no\ more\ than|not\ more\ than)\b.{0,40}\b(?:per|each|in\ (?:a|one|each|any))\b|\b(?:must|has\ to|have\ to)\ (?:stay|remain)\b""",
    r"""\bdo\ not\ exceed\b|\byou\ have\ a\ budget\b|^{LEAD}stick\ to\ .{2,50}\b(?:wherever|only|always|unless)\b""",
    r"""^{LEAD}no\ (?:\w+\ ){1,2}(?:longer|larger|bigger|deeper|wider|more|over|above|beyond)\b(?!\ (?:works?|needed|necessary|exists?)).{0,40}\b(?:\d+|than|\w+\ (?:lines|characters|words|files|sentences))\b""",
    r"""^{LEAD}(?:change|touch|edit|modify|delete|write|commit|push|install|add)\ nothing\b""",
    r"""^{LEAD}this\ is\ (?:an?\ )?(?:strictly\ )?(?:read-only|look-only)\ (?:\w+\ )?(?:investigation|session|task|review|exercise|job|analysis)\b""",
    # What is said of a thing, and means the agent
    r"""\b(?:is|are|stays?|remains?)\ (?:strictly\ |completely\ )?(?:hands-off|off\ the\ table|taboo|sacred|untouchable|not\ to\ be\ (?:touched|changed|edited|modified|deleted|used|shared))\b""",
    r"""\b(?:that|this|same)\ (?:goes|applies|holds)\ for\ (?:everything|all|any|every)\b""",
    # Approval and dislikes
    r"""\bi\ (?:want|need|have|(?:woul|')d\ like|insist)\ (?:to|on)\ (?:sign(?:ing)?\ off|approv(?:e|ing)|review(?:ing)?|see(?:ing)?|confirm(?:ing)?|check(?:ing)?)\b.{0,60}\b(?:every|each|all|any|before)\b""",
    r"""\bi\ (?:can'?t\ stand|hate|detest|dislike)\b.{2,60},\ (?:so|please)\b""",
    r"""^{LEAD}for\ (?:\w+ing|all|any|every|tests?|commits?|answers?|searches|logs?)\b[^,]{0,30},\s*(?:please\ )?(?:stick|use|take|run|write|prefer|avoid)\b""",
    r"""\bfor\ the\ (?:rest|remainder)\ of\ (?:this|the|our)\ (?:session|conversation|chat|day|project)\b.{0,20}\b"""
    + _VERBS
    + r"""\b""",
    # Corrections and permissions
    r"""^{LEAD}(?:forget|scratch|ignore|drop|disregard|never\ mind)\ (?:(?:what|everything)\ i\ (?:said|told|asked|wrote)|(?:the|my|that)\ (?:\w+\ )?(?:rule|instruction)s?)""",
    r"""\bi(?:'ve|\ have)?\ changed\ my\ mind\b.{0,60}[,;:—-]\s.{0,40}\b"""
    + _VERBS
    + r"""\b|^{LEAD}instead\ of\ asking\b|^{LEAD}you\ may\ \w+\ .{0,60}\bagain\b""",
)
"""Forms that count in any clause."""


def _clauses(text: str) -> Iterator[str]:
    """Yield the sentence, and what follows each comma, colon or conjunction in it."""
    yield text
    for end in _CLAUSE.finditer(text):
        rest = text[end.end() :]
        if len(rest) >= _SHORTEST:
            yield rest


_REPLACES = _compiled(
    r"""\b(?:forget|scratch|ignore|drop)\ (?:what|the|that|my|about)\b|\bno\ longer\b|\binstead\ of\ (?:asking|what)|\bafter\ all\b|\bagain\b|\bchanged\ my\ mind\b|\bchange\ of\ plan\b
    | \bactually\b|\brather\ than\ what\b|\bdoch\b|\bstatt\ ?dessen\b|\bnicht\ mehr\b|\bvergiss\b|\boublie\b|\bne\b.{1,20}\bplus\b|\bya\ no\b|\bolvida\b|\bdimentica\b|\bnon\b.{1,20}\bpiù\b|\besque[çc]a\b|\bnão\b.{1,20}\bmais\b
    | 不再|忘掉|改用|もう.{0,10}(?:ない|不要)|やっぱり"""
)

_FOREIGN = re.compile(
    r"""(?:
    # German
      \b(?:niemals|keinesfalls|ab\ (?:jetzt|sofort|heute)|von\ (?:jetzt|nun)\ an|künftig|in\ zukunft|grundsätzlich|ausschließlich|ohne\ ausnahme)\b
    | \b(?:immer|stets)\b.{0,40}\b(?:auf|mit|in|englisch|deutsch|vor|nach|bleiben)\b | \b(?:nach|vor|bei)\ (?:jede[mrs]?|allen)\b.{2,60}\b(?:bitte|\w+en|immer)\b
    | \bfrag(?:e|t)?\b.{0,20}\b(?:mich|nach|vorher)\b.{0,60}\b(?:bevor|vorher|ehe)\b | \bbevor\ du\b.{2,60}\bfrag | \bhöchstens\b.{2,40}\bpro\b | \bnur,?\ wenn\ ich\b
    | ^(?:bitte\ )?(?:\w+\ ){0,2}(?:bitte\ )?(?:nichts|keine?n?|nicht)\b.{2,60}\b(?:an|ab|ein|verwenden|benutzen|ändern|löschen|antworten)\b | \bkeine?n?\b.{2,40}\bin\ (?:deinen|den)\ antworten
    | ^es\ (?:darf|dürfen|soll|sollen)\b.{0,40}\b(?:nicht|nichts|keine?n?|nur|nie)\b | \b(?:darfst|sollst)\b.{0,60}\b(?:nicht|nichts|keine?n?|nur|nie)\b
    | \b(?:darf|dürfen|sollen|soll)\b.{0,60}\b(?:nicht|nichts|keine?n?|nur|nie|niemand)\b.{0,60}\b(?:geändert|verändert|angefasst|angerührt|berührt|gelöscht|entfernt|verwendet|benutzt|installiert|committet|gepusht|verlassen|auftauchen|erscheinen|genannt|stehen|geloggt|ausgegeben|herausgegeben|veröffentlicht|überschreiten|haben|sein\ als)\b
    | \bfinger\ weg\b | \b(?:durchgehend|durchweg|ausnahmslos|jederzeit)\b | \b(?:wird|werden|bleib\w*)\b.{0,60}\b(?:nirgendwohin|nirgends|nirgendwo)\b | \bes\ wird\ (?:nichts|nie|niemals)\b | \bbleib(?:e|t)?\b.{0,20}\binnerhalb\b
    | \bbeschränk(?:e|t)?\ dich\b | \bgeht\ dich\ nichts\ an\b | ^sobald\b.{2,80},\s*(?:dann\ )?(?:hör|sag|frag|stopp?|meld|brich|wart)
    |  \b(?:nimm|nutze?|verwende|benutze?)\b.{2,50}\bstatt\b | ^wenn\ (?:du|ein|etwas)\b.{2,80},\s*(?:dann\ )?(?:hör|sag|frag|stopp?|melde|brich)
    | \bfass(?:e|t)?\b.{0,20}\b(?:nichts|nie|nicht|keine?n?)\b
    | \b(?:nie|niemals|kein(?:e[nmr]?)?)\b.{2,60}\bohne\b.{0,30}\b(?:erlaubnis|zustimmung|rückfrage|okay) | \bin\ (?:all|jede[mrn])(?:en)?\ (?:texten|antworten|nachrichten|kapiteln|dateien|commits?|antwort|nachricht|datei)\b
    | ^(?:bitte\ )?(?:sag|sprich|schreib|antworte|nenn)\w*\b.{0,60}\b(?:nie|immer|stets)\b
    # French
    | \bn(?:e\ |')(?:\w+\ )?\w+(?:ez|e|s|ons)\ jamais\b | ^(?:toujours|jamais)\b.{3,} | \bdans\ (?:tous|toutes)\ (?:tes|vos|les)\ \w+
    | \b(?:à\ partir\ de\ maintenant|dorénavant|désormais|à\ l'avenir|chaque\ fois\ que|à\ chaque\ fois)\b | \b(?:ne|n')\s?\w+(?:ez|e|s|ons)?\s+(?:jamais|aucune?|pas|rien|plus)\b(?!\ (?:compris|sûr|encore|maintenant|tout\ de\ suite|pour\ l'instant))
    | \b(?:interdiction|interdit|défense)\ (?:\w+\ )?(?:de|d')\b | \b(?:reste(?:nt)?|écris|écrivez|réponds|répondez|parle[sz]?)\b.{0,30}\ben\ (?:anglais|français|allemand|espagnol)\b | \boublie[sz]?\b.{0,20}\b(?:consigne|règle|instruction)\b
    | ^pas\ plus\ de\b.{2,60}\bpar\b | \blimite-toi\b | \bon\ (?:n'\s?)?(?:utilise|écrit|met|emploie)\b.{2,60}\buniquement\b
    | \b(?:toujours)\b.{0,40}\b(?:en|avant|avec)\b | \bsans\ mon\ accord\b | \bdemande(?:-moi|z-moi)\b.{0,40}\bavant\b | ^pas\ de\b.{2,60}\bdans\b | ^uniquement\b
    # Spanish
    | \b(?:de\ ahora\ en\ adelante|a\ partir\ de\ ahora|en\ adelante|cada\ vez\ que|siempre\ que|bajo\ ninguna\ circunstancia)\b | \bnunca\s+\w+(?:es|as|s)\b | \bno\s+\w+(?:es|as)\s+nunca\b
    | \b\w+\s+siempre\b.{0,40}\b(?:con|en|comillas|antes)\b | \bpregúntame\b.{0,40}\bantes\b | \bsin\ mi\ (?:permiso|aprobación)\b
    | \bno\ se\ (?:toca|tocan|modifica|modifican|cambia|cambian|borra|borran|usa|usan)\b | \bquiero\ que\b.{0,60}\bsiempre\b | \blim[ií]t(?:ate|ese)\ a\b | \bolvida\ (?:la|lo\ de\ la)\ (?:regla|instrucción)\b | ^no\ más\ de\b.{2,60}\bpor\b
    # Portuguese
    | \b(?:de\ agora\ em\ diante|daqui\ (?:em|para)\ (?:diante|frente)|a\ partir\ de\ agora|sempre\ que|toda\ vez\ que|cada\ vez\ que)\b | ^não\s+\w+(?:e|a|es|as)\b.{1,60}\b(?:nenhuma?|nunca|jamais|nada)\b
    | \bantes\ de\ \w+.{2,40}\b(?:fale|pergunte|avise|confirme|consulte) | \b(?:limite-se|restrinja-se|limita-te)\b | ^antes\ de\ \w+.{2,60},\s*(?:me\ )?(?:pergunte|avise|consulte) | \buse\ sempre\b | \bsempre\s+(?:use|responda|escreva|execute)\b
    # Italian
    | \b(?:d'ora\ in\ (?:poi|avanti)|da\ (?:ora|adesso)\ in\ poi|ogni\ volta\ che)\b | \bogni\ \w+(?:\ \w+)?\ deve\b | \b(?:usa|rispondi|scrivi|lavora)\ (?:sempre|solo|soltanto|esclusivamente)\b | \bnon\s+\w+(?:are|ere|ire)\s+mai\b
    | ^non\s+(?:aggiunger|toccar|modificar|cambiar|cancellar|eliminar|usar|installar|committar|pushar|scriver)e\b(?!.*\b(?:ancora|adesso|per\ ora)\b) | ^\w+[aei]\ sempre\b.{0,80}\b(?:quando|dopo|prima|anche|ogni)\b | ^niente\b.{2,50}\b(?:nel|nei|nelle|nella|per\ favore)\b | \blimitati\ a\b
    | \bprima\ di\ \w+.{2,40}\b(?:chiedi|chiedimi|avvisami)
    # Dutch
    | \b(?:vanaf\ nu|voortaan|in\ het\ vervolg)\b | \b(?:gebruik|schrijf|antwoord|vraag|gebruikt|zorg)\b.{0,40}\b(?:altijd|nooit)\b | ^(?:raak|wijzig|verwijder|gebruik|schrijf)\b.{0,40}\b(?:nooit|geen|niets)\b | \bvraag\b.{0,20}\bvoordat\b
    # Russian and Ukrainian
    | \b(?:никогда|ни\ в\ коем\ случае)\b.{0,10}\bне\ \w+(?:й|йте|и|ите|ь|ьте)\b | \b(?:всегда|каждый\ раз|завжди)\ \w+(?:й|йте|и|ите|ь|ьте)\b | \w+(?:й|йте|ите|ьте)\ (?:всегда|завжди)\b
    | \b(?:впредь|отныне|с\ этого\ момента|с\ сегодняшнего\ дня|відтепер|надалі|больше\ не|ніколи\ не)\b | \bбез\ моего\ (?:разрешения|согласия|подтверждения)\b | \b(?:спрашивай|спроси|спрашивайте)\b.{0,20}\bперед\b | ^(?:пожалуйста,?\ )?не\ (?:трогай|меняй|изменяй|удаляй|используй|добавляй|пиши|коммить|пушь|ставь)(?:те)?\b
    # Polish
    | \b(?:nigdy\ nie|od\ teraz|odtąd|za\ każdym\ razem|bez\ mojej\ zgody)\b | \b(?:zawsze)\ \w+(?:j|aj|uj|isz|ij|ź|ń|cie)\b
    # Turkish
    | \b(?:bundan\ sonra|bundan\ böyle|asla|her\ zaman|her\ seferinde)\b
    # Swedish, Danish and Norwegian
    | \b(?:från\ och\ med\ nu|fra\ nå\ av|fra\ nu\ af|hädanefter)\b | ^(?:\w+\ ){0,3}(?:aldrig|aldri|alltid|altid)\b.{3,}
    # Chinese
    | (?:(?<!要)不要|请勿|請勿|别再|禁止|严禁|不得|不准|不允许|不許|切勿).{1,40} | (?:以后|今后|从现在起|从现在开始).{0,20}(?:用|请|要|不|都) | (?:始终|一律|必须|务必|總是|总是)(?:使用|用|先|在|要).{1,} | (?:每次|每当).{1,30}(?:都|请|要|必须|先)
    | (?:之前|前)[，,]?.{0,10}(?:先问我|先告诉我|先征求|征得|经我|问我)
    # Japanese and Korean
    | (?:しないで|触らないで|変更しない|使わないで|接続しない|ないでください|禁止) | (?:今後|これから|常に|必ず|毎回|絶対に).{1,40}(?:ください|こと|すること|て)$|(?:今後|これから|常に|必ず|毎回|絶対に).{1,60}(?:ください|こと|お願いします)[。.]? | 以内に.{0,12}(?:ください|こと|お願いします)
    | (?:前に).{0,10}(?:聞いて|確認して|相談して) | (?:하지\s?마|앞으로는?|항상|반드시).{1,40}
    )""",
    re.VERBOSE | re.IGNORECASE,
)
"""The same forms in other languages."""
_FOREIGN_PASSING = re.compile(
    r"""
      ^(?:und\ |aber\ |aunque\ |et\ |mais\ |y\ |e\ |ma\ |en\ |а\ |но\ )?(?:warum|wieso|weshalb|wann|wie|pourquoi|comment|quand|por\ qu[eéê]|c[oó]mo|cu[aá]ndo|¿|perch[eé]|come\ mai|quando|waarom|hoe|wanneer|почему|зачем|как|когда|dlaczego|jak|neden|niye|nasıl|varför|hur|hvorfor|hvordan)\b
    | [?？]$ | ^[^，,。]{0,12}(?:为什么|為什麼|为何|怎么|怎麼|なぜ|どうして|왜\s|어떻게)
    | \b(?:noch|erst\ einmal|erstmal|vorerst|für\ heute|im\ moment|gerade)\b(?=.{0,40}\bnicht\b) | \b(?:nicht|nichts|keine?n?|nur)\b.{0,40}\b(?:vorerst|für\ heute|im\ moment|diesmal|in\ diese[rm]\ (?:commit|schritt|pr))\b
    | \b(?:todavía|aún|de\ momento|por\ ahora|esta\ vez|ainda|por\ enquanto|desta\ vez|encore|pour\ l'instant|cette\ fois|ancora|per\ ora|stavolta|nog\ niet|deze\ keer|на\ этот\ раз|jeszcze|şimdilik|henüz)\b | \bпока\b(?!\ (?:я|не)) | (?:先不要|暂时|暫時|这次|這次|まだ|今回は|아직|이번에는)
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""Questions in them, and what holds for this step only."""
