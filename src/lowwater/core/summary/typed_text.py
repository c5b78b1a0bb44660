"""Telling what a user typed from what stands beside it in messages of role `user`: attachments, pastes, and what programs write.

An instruction counts only if the user gave it, and text that somebody else wrote may imitate one. So whatever could be
somebody else's is left out, together with all that follows wherever its end cannot be told: a file may contain whatever would seem to end it.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from lowwater.core.messages import Message, Text
from lowwater.core.summary.activity import is_notice, plain_text
from lowwater.core.summary.text import flat, sentences

MOST_CHARACTERS = 10_000
"""Characters of a message that are read; what comes later was hardly typed."""


def typed_words(message: Message, *, before: Message | None = None) -> str:
    """Return what the user typed in a message: no attached elements, notices of a harness or output of tools.

    `before` is the message before it: the text behind a slash command is the prompt that the command stands for, also in a message of its own,
    and the first message of a session may be what another agent hands over.
    """
    arguments = _command_arguments(before) if before is not None and before.role == "user" else None
    typed: list[str] = []
    for part in message.parts:
        if not isinstance(part, Text):
            continue
        text = plain_text(part.text)
        if _TOOL_OUTPUT.match(text):
            break
        if arguments is None or _COMMAND_TAG.match(text):
            arguments = _arguments_in(text)
            typed += [_without_elements(text)] if arguments is None else arguments
        else:
            typed += [given for given in arguments if text.rstrip().endswith(given)]
            arguments = None
    words = "\n\n".join(filter(None, (text.strip() for text in typed)))
    return "" if before is None and _BRIEF.search(words) else words


def typed_sentences(words: str) -> Iterator[str]:
    """Yield the sentences of what a user typed, without the documents, letters, conversations, listings and terminal output pasted into it.

    Each is as it was typed, but what it quotes counts as a name: `judged_form` says what is left to judge.
    """
    words = _BLANK.sub(lambda found: found[0][:_MOST_BLANK], _PRIVATE_USE.sub("", words[:MOST_CHARACTERS]))
    masked: list[str] = []

    def mask(found: re.Match[str]) -> str:
        if len(masked) == _MOST_MASKED:
            return ""
        masked.append(found[0])
        return chr(_FIRST_MASK + len(masked) - 1)

    said = _QUOTED.sub(mask, _without_pastes(words))
    for line in said.splitlines():
        if _NOT_TYPED.match(line) or _CODE_LINE.search(line):
            continue
        for sentence in sentences(line):
            yield _PRIVATE_USE.sub(lambda found: flat(masked[ord(found[0]) - _FIRST_MASK]), sentence)


def judged_form(sentence: str) -> str:
    """Return a sentence without what it quotes."""
    return _QUOTED.sub("…", sentence)


_FIRST_MASK, _MOST_MASKED = 0xE000, 6_400
_MOST_BLANK = 40
_BLANK = re.compile(r"\s{40,}")
"""Blank text as long as nobody types it is cut off: patterns that begin with blanks would take long."""
_PRIVATE_USE = re.compile("[\ue000-\uf8ff]")
"""Each stands for a quotation while the text around it is cut into sentences."""
_QUOTED = re.compile(
    r"""(?<!\w)"[^"]{12,4000}"(?!\w) | “[^”]{1,4000}(?:”|\Z) | «[^»]{1,4000}(?:»|\Z) | „[^“”]{1,4000}(?:[“”]|\Z)
    | (?<!\w)'(?=\w)[^'\n]{12,400}'(?!\w) | (?<=\S\ )<(?P<tag>[A-Za-z][\w-]*)(?:\s[^<>]*)?>[^\n]*</(?P=tag)\s*>""",
    re.VERBOSE,
)


# Elements

_WRAPPERS = frozenset(
    "user_query user_message user_input user_request user-request userrequest feedback task answer".split()
)
"""Elements into which clients put what the user typed."""
_OPENING = re.compile(r"<(?P<tag>[A-Za-z][\w.:-]*)(?P<rest>\s[^<>]*)?>")
_EMPTY = frozenset("br hr img input wbr".split())


def _without_elements(text: str) -> str:
    """Return a text without its elements, up to the last end tag of the same name; those in the middle of a line stay, as quotations.

    An element that begins a line and does not end reaches to the end of the text.
    """
    kept: list[str] = []
    at = 0
    if "<" not in text:
        return text
    lowered = text.lower()
    while found := _OPENING.search(text, at):
        tag = found["tag"].lower()
        line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        kept.append(text[at : found.start()])
        at = found.end()
        end = lowered.rfind(f"</{tag}", at)
        if tag in _WRAPPERS:
            if end >= 0:
                close = text.find(">", end)
                rest = text[close + 1 :] if close >= 0 else ""
                return f"{''.join(kept)}\n{_without_elements(text[at:end])}\n{_without_elements(rest)}"
            continue
        if end < 0 and (line.strip() or tag in _EMPTY or (found["rest"] or "").endswith("/")):
            kept.append(found[0])
        elif end < 0:
            return "".join(kept)
        elif line.strip() and "\n" not in text[at:end]:
            close = text.find(">", end)
            at = len(text) if close < 0 else close + 1
            kept.append(text[found.start() : at])
        else:
            close = text.find(">", end)
            at = len(text) if close < 0 else close + 1
            kept.append("\n")
    kept.append(text[at:])
    return "".join(kept)


# Commands and tools

_COMMAND_TAG = re.compile(r"\s*<command-(?:name|message)>", re.IGNORECASE)
"""How Claude Code records a slash command; the prompt that it stands for is the next text."""
_COMMAND_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL | re.IGNORECASE)
_TOOL_OUTPUT = re.compile(
    r"\s*(?:\[\w+(?: for [^\]]*)?\] Result:|(?:observation|new terminal output|current terminal (?:state|screen)|output of"
    r"|(?:tool|function|command|execution|shell|code|bash)(?: call)?(?: execution)? (?:output|results?|response)|results? of (?:the )?(?:tool|function|command|execution)"
    r")\b[^\n]*:|\[Tool|results? of calling)",
    re.IGNORECASE,
)
"""How agents that have no tool messages write down what a tool returned; the texts behind it may be part of that."""


_FOR_SUBAGENT = re.compile(
    rb"Agent threads always have their cwd reset|You are an agent for Claude Code|You are an? (?:[a-z]+ ){0,2}sub-?agent",
    re.IGNORECASE,
)
"""What Claude Code, Hermes and others say in the system prompts of sub-agents."""


@lru_cache(maxsize=16)
def is_for_subagent(system: bytes) -> bool:
    """Return whether a system prompt is that of a sub-agent, to which no user speaks."""
    return _FOR_SUBAGENT.search(system) is not None


def _command_arguments(message: Message) -> list[str] | None:
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    return _arguments_in(texts[-1]) if texts else None


def _arguments_in(text: str) -> list[str] | None:
    """Return what the user gave to a slash command; None if the text is not one."""
    if not _COMMAND_TAG.match(text):
        return None
    return [given for found in _COMMAND_ARGUMENTS.finditer(text) if (given := found[1].strip())]


# What was pasted

_PROMPT = re.compile(
    r"""\A\s*(?:
      implement\ the\ following\ plan: | \*\*action\ required | you\ are\ (?:an?|the)\b(?!.{0,20}\bright\b)
    | \#+\s | invoke\ the\ \S+\ skill | (?:a|the)\ session-scoped\ | your\ (?:task|job|goal|role)\ is\b | base\ directory\ for\b
    | ((?:critical|high|medium|low)\ severity)\b | `[^`]*→ | review\ (?:commit|the\ (?:current|code))\b
    | ---\s*\n | \{ | (?:task|objective|goal|mission|role|instructions?)\s*:\s*\n
    )""",
    re.VERBOSE | re.IGNORECASE,
)
"""How messages begin that a command, a plan, a review or another agent wrote."""
_BRIEF = re.compile(
    r"""\b(?: thoroughness(?:\ level)?\s*: | do\ not\ ask\ (?:for\ )?(?:clarif|follow) | you\ (?:are|have\ been|were)\ (?:spawned|launched|dispatched|delegated)
    | (?:parent|calling|orchestrat\w+|lead|coordinat\w+)\ agent\b | you\ are\ a\ sub-?agent\b | as\ a\ sub-?agent\b | (?:final|single)\ message\ back\b | back\ to\ the\ (?:main|parent|calling)\b
    | report\ back\ (?:with|your|the|what|on|in|only)\b
    | return\ (?:your|the|a|only|all)\ (?:[\w-]+\ ){0,4}(?:findings|results?|summary|report|list|answer|verdict|conclusions?)\b )""",
    re.VERBOSE | re.IGNORECASE,
)
"""What an agent says when it hands work to another."""
_SUMMARY = re.compile(
    r"""\A\W{0,40}(?:
      (?:(?:previous|earlier|prior|automatic|system)\W+){0,2}(?:context|conversation|session|history|chat|turns|messages)\W+(?:[\w-]+\W+){0,3}(?:summary|compaction|compacted|condensed|truncated)\b
    | (?:note\W+)?(?:(?:here\ is|here's|this\ is|the\ following\ is|below\ is)\W+)?(?:an?\ |the\ )?(?:(?:brief|short|structured|running|previous|earlier|detailed|rolling|condensed|compact|conversation|session|context|chat)\ ){0,2}summary\b(?:\ so\ far|[^\n]{0,60}\b(?:conversation|session|history|context|turns|messages|work|thread)\b)
    | [^\n]{0,300}\b(?:was|were|been|is|are)\ (?:\w+ly\ )?(?:compacted|summari[sz]ed|condensed|truncated|compressed)\b
    | [^\n]{0,200}\b(?:produced\ a\ summary|context\ (?:limit|window)\ was\b)
    | (?:relevant|recalled|retrieved|stored|user|long-term)?\ ?memor(?:y|ies)\b[^\n]{0,60}:
    )""",
    re.VERBOSE | re.IGNORECASE,
)
"""How messages begin in which a client's own compaction, or its memory, puts a model's words."""
_COMMAND_NAME = re.compile(r"\A\s*/[\w:-]+\s")
_ARGUMENTS = re.compile(r"^ARGUMENTS:", re.MULTILINE)
"""What follows it in the prompt of a slash command are the words that the user gave to the command."""

_DOCUMENT = r"""(?:readme|changelog|contributing|guide(?:lines?)?|handbook|manual|docs?|documentation|page|article|post|thread|wiki|policy|spec(?:ification)?|rfc|file|config
    |mail|e-?mail|letter|message|comment|review|feedback|ticket|issue|report|transcript|logs?|output|diff|patch|prompt|template|snippet|excerpt|text|reply|answer|response|note)"""
_SHOWN = r"""(?:contents?|results?|documents?|passages?|paragraphs?|articles?|essay|contract|stack\ ?trace|traceback|clipboard|context|descriptions?|errors?|exception|story|data
    |(?:web)?site)"""
"""What is a document only where it is shown."""
_SAYS = r"(?:says?|said|wrote|writes|reads|replied|answered|asked|commented|posted|reported|told\ (?:me|us)|wants|schrieb|sagt|écrit|dit|escribió|dice|scritto|schreef|napisał\w?|написал\w?|skrev|yazdı)"
_WORKS_ON_TEXT = r"""(?:translate|summari[sz]e|sum\ up|proof-?read|rephrase|paraphrase|reword|shorten|simplify|classify|critique|transcribe|tl;?dr|(?:fix|correct|check|improve)\ (?:the\ |my\ )?(?:typos?|grammar|spelling|wording)
    |(?:review|check|read|rewrite|edit|explain|analy[sz]e|interpret|evaluate|grade|improve|answer|reply\ to|respond\ to|extract)(?=\ (?:this|these|the\ following|the\ (?:\w+\ ){1,3}below)\b))"""
"""What one asks for with a text in view that stands below."""
_INTRODUCES = re.compile(
    r"""^[ \t]*(?:
      (?!(?:for|when|while|rules?|regarding|about|your|(?:some|a\ few|the|my|new|more|here\ are\ (?:the|some|my|a\ few))\ (?:ground\ |house\ )?rules?\ (?:for|in|while|when|about))\b).{0,160}\b"""
    + _DOCUMENT
    + r"""\b(?:[^.!?:\n]|[.:?](?=\S)){0,160}:[ \t]*$
    | (?:from|in|according\ to|per|as\ per|out\ of)\ (?:the|our|their|his|her|this|that|my)\ [^.!?:\n]{0,40}\b"""
    + _DOCUMENT
    + r"""\b[^.!?:\n]{0,40}:
    | .{0,160}(?<!\bi\ )(?<!\bwe\ )\b"""
    + _SAYS
    + r"""\b[^.!?:\n]{0,60}:
    | .{0,160}\bfrom\ [\w.\ -]{2,40}:[ \t]*$
    | (?!\ *(?:i|we)\b).{0,160}\b(?:says?|said|wrote|writes|reads|prints?|printed|returns?|returned|shows?|showed|outputs?|gives?(?:\ me)?|gave(?:\ me)?|(?:commented|posted|reported|replied)(?:\ [^.!?:\n]{1,40})?)[ \t]*$
    | (?:.{0,60}[,.]\ )?(?:(?:please|pls|can\ you|could\ you|would\ you|now|and|ok(?:ay)?|hi|hey|hello)[,!]?\ ){0,3}"""
    + _WORKS_ON_TEXT
    + r"""\b(?:[^.!?:\n]{0,120}:|(?=[^\n]*\b(?:this|these|following|below)\b)[^\n]{0,200}$)
    | .{0,60}\b(?:what\ do\ you\ (?:think|make)\ of|what\ does)\ (?:this|that|these|it|the)\b[^\n]{0,60}$
    | (?:.{0,40}[,.]\ )?(?:so\ )?(?:here(?:'s|\ is|\ are)|this\ is|i\ (?:found|got|get|see|have|received)|.{0,60}\bthe\ following)\ (?:this|that|these|what|(?:the\ )?(?:full\ |whole\ )?(?:"""
    + _DOCUMENT
    + "|"
    + _SHOWN
    + r"""))\b(?!.{0,20}\b(?:i|we|you|to)\ (?:want|need|expect|must|should|do)\b)(?:[^.!?:\n]|[.:?](?=\S)){0,160}:?[ \t]*$
    )""",
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
"""The user's own words with which a text of somebody else begins."""
_BEGINS_PASTE = re.compile(
    r"""^[ \t]*(?:
      (?:the\ |full\ |file\ )*contents?\ of\ .{1,300}:\s*(?:$|\S)
    | [^\s:]*[\w-]+\.(?:md|mdx|txt|rst|toml|ya?ml|json|py|ts|tsx|js|go|rs|java|cfg|ini|mdc|html?)\b[^.!?\n]{0,30}:?[ \t]*$
    | (?:file(?:name)?|document|attachment|source|path|title|subject|from|sent|von|gesendet|betreff|de|objet|asunto|onderwerp|temat|тема)\s*:\s.*$
    | \[(?:file|attachment|attached|document)\b.* | here\ are\ (?:some|the)\ read[ -]only\ files\b.*
    | (?:(?:web\ )?search|query|retrieval|retrieved)?\ ?(?:results?|documents?|context|passages?|articles?)(?:\ (?:for|of|from|information)\b.*)?:\s*.*$
    | (?:issue|ticket|bug|pr|pull\ request|merge\ request)\ (?:\#?\d+\b|(?:description|body|title|text)\b).*$
    | Traceback\ \(most\ recent\ call\ last\).* | use\ (?:only\ )?the\ following\ (?!\w*\ ?(?:rules?|convention|style|format|approach|steps?|commands?|tools?|names?|workflow)).*$
    | [-=*_~]{3,}.*$ | BEGIN\ .{1,40}$
    | .{0,40}(?:forwarded|original)\ message.{0,40}$ | (?:fwd?|wg|tr|rv|doorst)\s*:.*$
    | (?:user|human|assistant|ai|system|developer|bot|agent|customer)\s*:.*$
    | \[?\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]m)?\]?\s+[^\s:]{1,30}.*:.*$ | [\w.\ -]{2,40}\ \[?\d{1,2}:\d\d(?:\s?[ap]m)?\]?:?\s*$ | <[\w.-]{2,30}>\s.*$
    | (?:this|the(?:se)?)\ (?:guide|document|documentation|page|readme|handbook|manual|policy|section|chapter|article|repository|repo|guidelines|specification|standard|rules)\ (?:describes?|explains?|covers|contains|defines?|documents|outlines?|appl(?:y|ies)|provides?|specif(?:y|ies)|(?:is|are)\ (?:intended|meant|a\ guide|a\ collection|maintained|licen[cs]ed))\b.*$
    | .{0,60}\b(?:table\ of\ contents|all\ rights\ reserved|licen[cs]ed\ under|pull\ requests\ are\ welcome|thank(?:s|\ you)\ for\ (?:your\ interest|contributing|considering))\b.*$
    | \d{1,2}(?:\.\d{1,2})+\.?\s+[A-Z][^.!?\n]{2,60}$ | \*\*[^*\n]{2,80}\*\*:?[ \t]*$ | \#{1,6}\s+\S.*$ | \S[^\n]{1,80}\n[ \t]*(?:={3,}|-{3,})[ \t]*$
    | (?:hi|hello|hey|dear|hallo|liebe[rs]?|sehr\ geehrte[rs]?|bonjour|ch[eè]re?s?|hola|estimad[oa]s?|ciao|gentile|olá|beste|hej|cześć|szanown\w+|здравствуйте|merhaba)\ (?!(?:claude|codex|gemini|gpt|chatgpt|copilot|cursor|agent|assistant|there|again|bot|ai)\b)[\w.\ ]{2,40},[ \t]*$
    )""",
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
"""Lines that begin a file, a letter, a document or a conversation of others; where it ends, its own words could say anything."""
_SIGNED = re.compile(
    r"""^[ \t]*(?:(?:best|kind|warm|many)?\s*(?:regards|wishes|greetings)|best|cheers|sincerely|yours(?:\ \w+)?|mit\ freundlichen\ grüßen|viele\ grüße|(?:beste|liebe)\ grüße|cordialement|bien\ à\ vous
    |(?:un\ )?saludos?|atentamente|cordiali\ saluti|atenciosamente|met\ vriendelijke\ groet|z\ poważaniem|pozdrawiam|med\ vänlig\ hälsning|med\ venlig\ hilsen|saygılarımla|с\ уважением)[,.!]?[ \t]*\n+[ \t]*[\w.\ -]{2,40}[ \t]*$""",
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
"""The end of a letter: all before it is one."""
_TITLE = re.compile(
    r"(?:\A|\n[ \t]*\n)[ \t]*(?P<title>[A-Z][\w'&/-]*(?: [\w'&/()-]+){0,6})[ \t]*\n[ \t]*\n?(?=[^\n]{60})"
)
"""The title of a section in plain text; two of them make a document."""
_NOT_TYPED = re.compile(r"^\s*(?:>|[❯➜⏺⎿│├╰╭┃$|]|[+]\s|@@|[-+]{3}|at\ \S+\(|\d+\s+[+-]|\d+(?:\t|→))")
_CODE_LINE = re.compile(
    r"[{};]\s*$|=>|:=|\b(?:func|def|return|import|const)\b.*[({]|\w+\.\w+\(.*\)|^\s*\S+:\d+"
)
_LONG = 2_500
"""Characters beyond which a text is a document, and only the paragraph that introduces it, or asks for something below it, can be the user's."""


def _without_pastes(words: str) -> str:
    """Return what is left of a text without what was pasted; its lines stay lines."""
    if _SUMMARY.match(words):
        return ""
    if _PROMPT.match(words):
        arguments = list(_ARGUMENTS.finditer(words))
        if not arguments:
            return ""
        words = words[arguments[-1].end() :]
    words = _COMMAND_NAME.sub("", words)
    if _SIGNED.search(words):
        return ""
    said = _without_fences(words) if "```" in words or "~~~" in words else words
    ends = [found.start() for found in (_BEGINS_PASTE.search(said),) if found]
    ends += [found.end() for found in (_INTRODUCES.search(said),) if found]
    titles = [found.start("title") for found in _TITLE.finditer(said)]
    if len(titles) > 1:
        ends.append(titles[0])
    lines = said.splitlines(keepends=True)
    at = 0
    for line in lines:
        if is_notice(line):
            ends.append(at)
            break
        at += len(line)
    said = said[: min(ends)] if ends else said
    return said.split("\n\n")[0] if len(said) > _LONG else said


def _without_fences(text: str) -> str:
    """Return the text outside fences of ``` or ~~~; one that is never closed reaches to the end."""
    for fence in ("```", "~~~"):
        text = "\n".join(text.split(fence)[::2])
    return text
