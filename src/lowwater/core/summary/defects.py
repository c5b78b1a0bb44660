"""What makes a text unfit to stand for messages, whatever it keeps of them: it is no summary, or it says what nobody said.

Each defect has a code, which the event of the compaction records. They are told from the text as it was written; none can be repaired.
"""

import re
from collections.abc import Iterator, Sequence

from lowwater.core.summary.critical import forbidding_words, is_forbidden
from lowwater.core.summary.grounding import LONG_LINE, Grounding, Sources
from lowwater.core.summary.instructions import is_instruction
from lowwater.core.summary.languages import other_language
from lowwater.core.summary.request import Critical, VerdictCode
from lowwater.core.summary.template import HINTS
from lowwater.core.summary.text import flat, is_prohibition, key_words, sentences

_LEADING = re.compile(r"\A(?:\s|#[^\n]*\n|[-*>]\s)+")
_HEADING = re.compile(r"^\s*(?:#{1,6}\s+.*|\*\*[^*\n]{1,60}\*\*:?|\d{1,2}\.\s+[^:\n]{1,60}:)\s*$")
_PLACEHOLDER = re.compile(
    r"^\W*(?:none|n/?a|nothing|tbd|todo|unknown|empty|not applicable|keine?|nichts|aucune?|rien|ninguno|nada|\.{3}|…|\[[^\]\n]*\]|<[^>\n]*>)?[\W_]*$",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|„[^“”\n]*[“”]|«[^»\n]*»", re.DOTALL)
_BULLET = re.compile(r"^\s*(?:[-*•>]\s+|\d{1,2}[.)]\s+)*")

# It is no summary


def form_defect(text: str, sources: Sources) -> VerdictCode | None:
    """Return the code of what makes a text no summary at all; refusals are told by `is_refusal`, before anything else."""
    if _is_call(text):
        return "tool_call"
    if _is_echo(text, sources):
        return "echo"
    if _is_truncated(text):
        return "cut_off"
    if other_language(prose(text), sources.prose):
        return "other_language"
    if _says_nothing(text):
        return "says_nothing"
    return "answers_user" if _answers(text) else None


def prose(text: str) -> str:
    """Return a text without what it quotes and without code."""
    return _QUOTED.sub(" ", text)


_REFUSAL_CHARS = 600
"""In a text shorter than this, a refusal anywhere makes the whole a refusal."""
_REFUSAL = re.compile(
    r"""(?:(?:i['’]?m|i\ am|we['’]?re|we\ are)\ (?:very\ |so\ |really\ )?(?:sorry|afraid)
          |sorry|my\ apologies|i\ apologi[sz]e|apologies|unfortunately|regrettably)
        [^.\n]{0,80}?\b
        (?:can['’]?t|cannot|can\ not|unable|not\ able|won['’]?t|not\ going\ to|must\ decline|not\ possible)
    | i\ (?:can['’]?t|cannot|can\ not|won['’]?t|will\ not|must\ decline|decline|refuse)\b[^.\n]{0,40}?\b
        (?:assist|help|comply|provide|fulfil|fulfill|do\ that|complete|summari[sz]e|continue|engage|discuss|process|to\b)
    | i(?:['’]?m|\ am)\ (?:unable|not\ able|not\ allowed|not\ permitted|not\ comfortable)\b
    | (?:as|being)\ an?\ (?:ai|language\ model|assistant)\b[^.\n]{0,60}?\b(?:can['’]?t|cannot|unable|not)
    | this\ (?:request|conversation|content)\ (?:violates|goes\ against|cannot\ be)
    | (?:对不起|抱歉|很抱歉)[，,]?[^。\n]{0,20}(?:无法|不能) | 我(?:无法|不能)(?:协助|帮助|提供|完成)
    | (?:申し訳|すみません)[^。\n]{0,30}(?:できません|できかねます|いたしかねます)
    | 죄송[^.\n]{0,30}없습니다
    | (?:es\ tut\ mir\ leid|lo\ siento|désolé|je\ suis\ désolé)[^.\n]{0,60}?\b(?:kann|nicht|puedo|peux)""",
    re.VERBOSE | re.IGNORECASE,
)


def is_refusal(text: str) -> bool:
    """Return whether a text declines to summarise instead of doing so."""
    body = _LEADING.sub("", text)
    if _REFUSAL.match(body):
        return True
    return len(body) < _REFUSAL_CHARS and _REFUSAL.search(body) is not None and "## " not in text


_CALL = re.compile(
    r"""\A\s*(?:```\w*\s*)?(?:
      <(?:\w+:)?(?:function_calls?|tool_calls?|tool_use|invoke|function|tool_code)\b
    | [\[{]\s*(?:[\[{]\s*)?"(?:name|tool|tool_name|function|tool_calls|recipient_name|type"\s*:\s*"(?:function|tool_use)|action|command|arguments|parameters|id"\s*:\s*"(?:call_|toolu_))
    | (?:to|tool|call|action)\s*[=:]\s*(?:functions\.)?\w+\s*(?:\n|\()
    | \[(?:tool[ _]call|calling|call)\b
    )""",
    re.VERBOSE | re.IGNORECASE,
)


def _is_call(text: str) -> bool:
    return _CALL.match(text) is not None


_TRANSCRIPT_LABEL = re.compile(
    r"^\[lw:\d+ (?:\w+ (?:said|attached)|called |result of )|^-{3,} (?:end of the )?transcript\b",
    re.MULTILINE,
)
_COPIED = 0.6
"""The share of a text that whole lines of the messages may make up."""
_FEWEST_LINES = 3


def _is_echo(text: str, sources: Sources) -> bool:
    """Return whether a text repeats what the summarizer was shown: its instructions, the transcript, or messages as they are."""
    if len(_TRANSCRIPT_LABEL.findall(text)) > 1:
        return True
    hinted = sum(hint in text for hint in HINTS.values())
    if hinted > 2:
        return True
    lines = [line.strip() for line in text.splitlines()]
    copied = [line for line in lines if len(line) >= LONG_LINE and line in sources.lines]
    return len(copied) >= _FEWEST_LINES and sum(map(len, copied)) > _COPIED * len(flat(text))


_OPEN_END = re.compile(
    r"""(?:[,(\[{/\\=+&–—] | (?<=\w)-
    | \b(?:the|an?|and|or|but|of|to|in|on|with|for|from|by|at|as|that|which|is|are|was|were|be|been|has|have|had|will|would|should|because|so|if|when
      |der|die|das|ein|eine|und|oder|aber|von|zu|im|mit|für|auf|dass|ist|sind|wird|wurde|weil|wenn|le|la|les|un|une|et|ou|de|du|des|que|el|los|y|con|para))\Z""",
    re.VERBOSE | re.IGNORECASE,
)


def _is_truncated(text: str) -> bool:
    """Return whether a text visibly ends before its end: within a fence, a quotation, a heading or a sentence."""
    body = text.rstrip()
    if not body:
        return False
    if sum(line.lstrip().startswith("```") for line in body.splitlines()) % 2:
        return True
    last = body.splitlines()[-1].strip()
    if last.startswith("```"):
        return False
    return (
        _HEADING.fullmatch(last) is not None
        or last.count("`") % 2 == 1
        or last.count("**") % 2 == 1
        or _BULLET.sub("", last) == ""
        or _OPEN_END.search(last) is not None
    )


_LEAST_SAID = 80
"""Characters of content that a summary has at least, without headings and placeholders."""
_MOST_REPEATED = 0.5
_FEWEST_REPEATED = 6


def _says_nothing(text: str) -> bool:
    """Return whether a text is an empty frame, or the same sentence over and over."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [
        line
        for line in lines
        if not _HEADING.fullmatch(line) and not _PLACEHOLDER.match(_BULLET.sub("", line))
    ]
    if sum(map(len, said)) < _LEAST_SAID:
        return True
    told = [flat(sentence) for sentence in sentences(text)]
    return len(told) >= _FEWEST_REPEATED and len(set(told)) < _MOST_REPEATED * len(told)


_OPENS_AN_ANSWER = re.compile(
    r"""\A\W*(?:(?:sure|certainly|absolutely|of\ course|no\ problem|happy\ to|you(?:'|’)?re\ (?:absolutely\ )?right|good\ (?:question|point|catch)|great(?:\ question)?
      |thank\ you\ for|thanks\ for|gerne|klar|natürlich|selbstverständlich|guten\ tag|bien\ sûr|avec\ plaisir|claro|por\ supuesto|certo|certamente|hello|hi|hallo|dear)\b
    | (?:i(?:'|’)?ll|i\ will|let\ me|i(?:'|’)?m\ going\ to|ich\ werde|lass\ mich|je\ vais|voy\ a)\s(?!(?:summari|recap|condense|zusammen)))""",
    re.VERBOSE | re.IGNORECASE,
)
_NAMES_A_SUMMARY = re.compile(
    r"\b(?:summar|recap|overview|handover|hand-off|zusammenfass|résumé|resumen|riassunto|resumo)",
    re.IGNORECASE,
)
_CLOSES_AN_ANSWER = re.compile(
    r"""(?:let\ me\ know|would\ you\ like(?:\ me)?|do\ you\ want\ me|want\ me\ to|shall\ i|should\ i|feel\ free\ to|hope\ (?:this|that)\ helps|anything\ else(?=[^\n]{0,60}\?)|if\ you(?:'d|’d|\ would)?\ (?:like|want|prefer),?\ i
      |happy\ to\ help|soll\ ich|möchtest\ du|möchten\ sie|sag\ (?:mir\ )?bescheid|lass\ (?:es\ )?mich\ wissen|melde\ dich|dis[- ]moi\ si|souhaitez-vous|veux-tu|quieres\ que|avísame|fammi\ sapere|vuoi\ che|quer\ que)
    [^\n]{0,160}[?.!]?\s*\Z""",
    re.VERBOSE | re.IGNORECASE,
)
_TO_THE_USER = re.compile(r"\b(?:you|your|yours|you're|you'll|dein\w{0,2}|dir|dich)\b", re.IGNORECASE)
_MOST_ADDRESSED = 0.5
_FEWEST_ADDRESSED = 3


def _answers(text: str) -> bool:
    """Return whether a text speaks to the user, as an answer does, rather than about what happened."""
    said = prose(text).strip()
    if _OPENS_AN_ANSWER.match(said) and not _NAMES_A_SUMMARY.search(said[:200]):
        return True
    if _CLOSES_AN_ANSWER.search(said[-400:]):
        return True
    told = list(sentences(said))
    addressed = sum(_TO_THE_USER.search(sentence) is not None for sentence in told)
    return addressed >= _FEWEST_ADDRESSED and addressed > _MOST_ADDRESSED * len(told)


# It says what nobody said


def content_defect(
    text: str, sources: Sources, grounding: Grounding, wanted: Sequence[Critical]
) -> VerdictCode | None:
    """Return the code of what makes a summary say something that is not so."""
    if _turns_around(text, sources, wanted):
        return "turned_around"
    if _gives_orders(text, sources):
        return "gives_orders"
    return "invented" if _invents(grounding) else None


_LEAST_GROUNDED = 0.7
"""The share of what a summary names that must occur in its sources."""
_FEWEST_NAMED = 4
_MOST_INVENTED_PATHS = 2
_INVENTED_PATH_SHARE = 0.12


def _invents(grounding: Grounding) -> bool:
    if grounding.named < _FEWEST_NAMED:
        return False
    if grounding.share < _LEAST_GROUNDED:
        return True
    paths = grounding.invented_paths
    return paths > _MOST_INVENTED_PATHS and paths > _INVENTED_PATH_SHARE * grounding.named


_PERMITS = re.compile(
    r"""\b(?: (?<!not\ )(?:may|can)\ (?:now\ |freely\ )?(?!not\b) | allow(?:s|ed)?\b | permit(?:s|ted)?\b | free\ to\b | fine\ (?:to|with)\b | ok(?:ay)?\ (?:to|with)\b | no\ longer\ (?:applies|holds|forbidden|off|in\ force|necessary|required|needed|prohibited)
    | lifted\b | withdr[ae]w\w*\b | revoked?\b | dropped\ the\b | agreed\ (?:to|that)\b | approv(?:ed|es)\b | grant(?:s|ed)\b | waived\b | instead\ (?:wants?|asked)\b | (?:wants?|asked|told|instructed)\ (?:us|it|me|you|the\ (?:agent|assistant)|to)\b
    | without\ (?:asking|confirmation|approval)\b | darf\b | dürfen\b | erlaubt\b | gestattet\b | genehmigt\b | aufgehoben\b | peut\b | autorisé\w*\b | puede\b | permitid\w\b | permite\b )""",
    re.VERBOSE | re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not|n't|never|no|without|nicht|kein\w*|nie|niemals|ne|pas|jamais|nunca|sin)\b|n['’]t\b",
    re.IGNORECASE,
)
_WITHDRAWS_ALL = re.compile(
    r"""\b(?: (?:withdr[ae]w\w*|lifted|revoked?|cancel+ed|overrul\w+|overrid\w+|rescinded|dropped|waived|superseded|aufgehoben|zurückgenommen|zurückgezogen|widerrufen)\b.{0,40}\b(?:every|all|any|earlier|previous|prior|these|those|his|her|their|alle|frühere\w*|bisherige\w*)\b.{0,40}\b(?:instructions?|rules?|constraints?|restrictions?|prohibitions?|limits?|anweisungen|regeln|verbote|einschränkungen)
    | (?:every|all|any|earlier|previous|prior|alle|frühere\w*|bisherige\w*)\b.{0,40}\b(?:instructions?|rules?|constraints?|restrictions?|prohibitions?|anweisungen|regeln|verbote|einschränkungen)\b.{0,40}\b(?:withdrawn|lifted|revoked|cancel+ed|rescinded|dropped|waived|no\ longer|void|obsolete|expired|superseded|aufgehoben|hinfällig|nicht\ mehr)
    | no\ (?:restrictions?|constraints?|rules?|prohibitions?|instructions?)\b.{0,30}\b(?:appl\w+|remain\w*|hold|in\ force|any\ (?:more|longer)) )\b""",
    re.VERBOSE | re.IGNORECASE,
)
_ABOUT_IT = 0.6
"""The share of a prohibition's key words that a line must have to be about the same thing."""


def _turns_around(text: str, sources: Sources, wanted: Sequence[Critical]) -> bool:
    """Return whether a text says that the user allowed what the user forbade, or took back what was laid down."""
    forbidden = [each for each in wanted if is_forbidden(each) and each.words]
    lines = [prose(_BULLET.sub("", sentence)) for sentence in sentences(text)]
    for line in lines:
        if _WITHDRAWS_ALL.search(line) and not any(
            _WITHDRAWS_ALL.search(said) for said in sources.user_texts
        ):
            return not sources.said_by_user(line, _ABOUT_IT)
        if is_prohibition(line) or not _PERMITS.search(line):
            continue
        present = set(key_words(line))
        for reference in forbidden:
            meant = [word for word in forbidding_words(reference.text) if not _NEGATION.fullmatch(word)]
            shared = sum(word in present for word in meant)
            if shared >= max(2, _ABOUT_IT * len(meant)) and not _was_allowed(reference, sources):
                return True
    return False


def _was_allowed(reference: Critical, sources: Sources) -> bool:
    """Return whether a sentence of the user permits what another one forbids."""
    for said in sources.user_texts:
        for sentence in sentences(said):
            if flat(reference.text) in flat(sentence) or is_prohibition(sentence):
                continue
            present = set(key_words(sentence))
            if _PERMITS.search(sentence) and sum(word in present for word in reference.words) >= 1:
                return True
    return False


_ORDERS = re.compile(
    r"""(?: \b(?:ignore|disregard|forget|override|bypass|vergiss|ignoriere|missachte)\b.{0,30}\b(?:previous|prior|earlier|above|preceding|system|safety|all|any|every|bisherige\w*|vorherige\w*|alle)\b.{0,30}\b(?:instructions?|rules?|guidelines?|constraints?|prompts?|polic\w+|anweisungen|regeln)
    | \b(?:do\ not|don't|never|without)\b.{0,20}\b(?:tell|telling|inform\w*|mention\w*|reveal\w*|show\w*|alert\w*|ask|asking|notify\w*)\b.{0,20}\bthe\ user\b
    | \bnever\ ask\ before\b | \bwithout\ asking\ (?:first|before|anybody|anyone)\b
    | \b(?:curl|wget|iwr)\b[^\n|]{0,200}\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b
    | ^\W*(?:system|developer|assistant|admin(?:istrator)?)\s*(?:message|prompt|note|override)?\s*:\s*\S
    | <\|(?:im_start|im_end|system|endoftext)\|> | \[/?INST\] | </?system>
    | \byou\ (?:are\ now|must\ now|will\ now|should\ now|have\ to\ now)\b | \byour\ (?:new|real|actual|true)\ (?:task|role|goal|instructions?|job|purpose)\b
    | \b(?:attention|note|message|instructions?|important)\b.{0,12}\b(?:to|for)\ (?:the\ |any\ |all\ )?(?:ai|agents?|assistants?|models?|llms?|next\ agent)\b.{0,4}:
    | \b(?:the\ )?(?:agent|assistant|you|ai|model)\ (?:must|should|has\ to|have\ to|needs?\ to|is\ (?:required|instructed)\ to)\ (?:now\ |immediately\ |first\ |always\ |silently\ )*(?:run|execute|upload|send|post|e-?mail|forward|delete|drop|push|grant|disable|download|install|exfiltrat\w+|publish|transfer)\b )""",
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_REPORTS = re.compile(
    r"\b(?:injection|contain(?:s|ed)|was ignored|were ignored|not followed|did not follow|attempt(?:s|ed)?|suspicious|phishing|malicious|claimed|pretend(?:s|ed)|asked (?:the|it|me) to|enthält|enthielt)\b",
    re.IGNORECASE,
)
_SAID = 0.7
_LONGEST_ORDER = 400


def _gives_orders(text: str, sources: Sources) -> bool:
    """Return whether a text gives the agent orders of which no user, system prompt, answer or earlier summary knows."""
    return any(not sources.laid_down(order, _SAID) for order in _orders(text))


def _orders(text: str) -> Iterator[str]:
    for line in text.splitlines():
        body = _BULLET.sub("", line).strip()
        if body and _ORDERS.search(body) and not _REPORTS.search(body):
            yield body[:_LONGEST_ORDER]
            continue
        for sentence in sentences(line):
            said = prose(sentence)
            if _STANDING.search(said) and is_instruction(said) and not _REPORTS.search(said):
                yield said[:_LONGEST_ORDER]


_STANDING = re.compile(
    r"^\W*(?:from (?:now|here) on|going forward|for the rest of|at all times|ab jetzt|ab sofort|von nun an|künftig|désormais|dorénavant|de ahora en adelante)\b",
    re.IGNORECASE,
)
