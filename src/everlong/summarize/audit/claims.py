"""Check what a summary says users asked for or approved against what users said.

The facts repeat the user's own words anyway, so an unsupported claim can be removed. A claim about an irreversible act
needs a user who mentioned that act and did not forbid it. Names and figures that do not occur in the conversation are
inventions.
"""

import re
from collections.abc import Iterable, Iterator

from everlong.relevance import names_in
from everlong.summarize.audit.evidence import ACT, TIMES, Evidence, Statement, acts_in, content_terms, squashed

__all__ = ["claimed", "invented_in", "named_in", "unfounded", "unsaid", "unwarranted"]

#: A step that asks for permission first.
_ASKING = re.compile(
    r"\b(?:ask\w*|whether|confirm|check with|discuss\w*|clarify|wait\w*|pending|until)\b|询问|是否|等待|讨论|确认",
    re.IGNORECASE,
)
_WHO = r"\b(?:users?|human|operator)(?:['’]s)?"
_APPROVED = (
    r"(?:approv(?:ed|es)|confirm(?:ed|s)|authori[sz](?:ed|es)|agree(?:d|s)|consent(?:ed|s)|permit(?:ted|s)"
    r"|allow(?:ed|s)"
    r"|accept(?:ed|s)|okayed|ok['’]d|signed off|green-?lit|grant(?:ed|s)|said (?:yes|ok)"
    r"|gave (?:\w+ ){0,3}(?:permission|approval|consent|confirmation|authori[sz]ation|go-?ahead|green light))"
)
_ASSENT = r"(?:approval|permission|consent|authori[sz]ation|go-?ahead|green light)"
_ASKED = (
    r"(?:ask(?:ed|s)?|wants?|wanted|request(?:ed|s)|instruct(?:ed|s)|told|order(?:ed|s)|demand(?:ed|s)|insist(?:ed|s)"
    r"|direct(?:ed|s)|said|prefers?|preferred|needs?|would like|expects?)\b"
)
#: Phrases for a user's approval. `_PENDING` recognises those that still wait for it.
APPROVALS = re.compile(
    rf"{_WHO}(?:\s+[\w-]+){{0,3}}?\s+{_APPROVED}\b"
    rf"|\b(?:they|he|she)(?:\s+[\w-]+){{0,2}}?\s+{_APPROVED}\b"
    rf"|\b(?:approved|confirmed|authori[sz]ed|permitted|cleared|sanctioned) by (?:the )?(?:user|human|operator)"
    rf"|\bwith (?:the )?(?:user|human|operator)['’]?s? (?:\w+ )?(?:{_ASSENT}|confirmation)"
    rf"|{_ASSENT} (?:\w+ ){{0,8}}(?:given|granted|received|obtained)\b|^\W*(?:pre-?)?(?:approved"
    rf"|authori[sz]ed)\b(?=\s*[:：]| (?:to|for|by)\b)"
    rf"|\buser[ _](?:{_ASSENT}|approved|confirmed|authori[sz]ed)\W{{1,4}}(?:yes|true|ok|given|granted)"
    r"|用户(?:已经|已|均|也|都|明确|口头|再次|刚刚|当时|随后|表示|最终|全部|一致|完全){0,3}(?:批准|同意|确认"
    r"|授权|允许|许可|认可|准许|答应)"
    r"|(?<![未没须需有])(?:获得?|得到|取得|经过?)了?用户的?(?:明确)?(?:批准|同意|确认|授权|允许|许可)|已(?:获|得到|经)?(?:批准"
    r"|授权|获准)",
    re.IGNORECASE,
)
REQUESTS = re.compile(
    rf"{_WHO}(?:\s+[\w-]+){{0,2}}?\s+{_ASKED}|\b(?:requested|instructed|ordered|demanded) by (?:the )?(?:user|human)"
    r"|\b(?:was|were|been) (?:asked|told|instructed|ordered) to\b"
    r"|用户(?:\w{0,2}?)(?:要求|请求|希望|想要|想|让|指示|命令|吩咐|需要|坚持|提出|指定|叫)",
    re.IGNORECASE,
)
#: Words right before a claim that mean it is still pending.
_PENDING = re.compile(
    r"(?:\b(?:if|until|unless|once|whether|pending|before|awaiting|that) (?:the )?"
    r"|等待?|待|需要?|须|请|让|由|如果?|若|是否|直到|除非|一旦|未经|未获得?|没有?|征求|询问|提示|要求|须经|需经)\s*$",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:not|never|yet|no)\b|n['’]t\b|未|没", re.IGNORECASE)
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_CUT_MARK = re.compile(r"\[?…[^\]]{0,20}\]?|\[redacted\]|\.\.\.")
RELATED_SHARE = 0.4  # of the terms of a sentence must occur in a statement for the two to be related
MENTIONED_SHARE = 0.5  # of the terms of a request must occur in what anybody said
SHORTEST_PIECE = 2  # letters; shorter pieces prove nothing


def claimed(sentence: str) -> str:
    """Return the claim that a sentence makes about a user: "approved", "asked" or ""."""
    for kind, pattern in (("approved", APPROVALS), ("asked", REQUESTS)):
        for match in pattern.finditer(sentence):
            if not _PENDING.search(sentence[: match.start()]) and not _DENIED.search(match[0]):
                return kind
    return ""


def unfounded(sentence: str, evidence: Evidence) -> str:
    """Return why a claim about a user is unsupported; "" if it is supported, or if there is no claim."""
    kind = claimed(sentence)
    if not kind:
        return ""
    terms, acts = _telling_terms(sentence), {act for act in acts_in(sentence) if not act[1]}
    related = [
        statement
        for statement in evidence.statements
        if _related(terms, statement) or (not acts and _foreign(sentence, statement))
    ]
    reason = "an approval that no user gave" if kind == "approved" else "a request that no user made"
    if not acts <= _acts_of(related):
        return reason
    if kind == "approved":
        return "" if related and (terms or any(statement.assents for statement in related)) else reason
    foreign = all(_foreign(sentence, statement) for statement in evidence.statements)
    return "" if foreign or len(terms & evidence.talked) >= MENTIONED_SHARE * len(terms) else reason


def unwarranted(step: str, evidence: Evidence) -> str:
    """Return why a next step must go: nobody mentioned the act, or a user forbade it; "" if it may stay."""
    acts, terms = {name for name, forbidden in acts_in(step) if not forbidden}, _telling_terms(step)
    if not acts or _ASKING.search(step):
        return ""
    by_users = _acts_of([statement for statement in evidence.statements if _related(terms, statement)])
    by_models = _acts_of([statement for statement in evidence.answers if _related(terms, statement)])
    for name in sorted(acts):
        if (name, False) in by_users:
            continue
        if (name, True) in by_users:
            return "a step that a user forbade"
        if (name, False) not in by_models:
            return "a step that nobody mentioned"
    return ""


def unsaid(request: str, evidence: Evidence) -> bool:
    """Whether no user said this word for word, ignoring marks for cuts and redactions."""
    pieces = [key for piece in _CUT_MARK.split(request) if len(key := squashed(piece)) >= SHORTEST_PIECE]
    return not pieces or not all(piece in evidence.said for piece in pieces)


def _acts_of(statements: Iterable[Statement]) -> set[tuple[str, bool]]:
    return {act for statement in statements for act in statement.acts}


def _telling_terms(sentence: str) -> frozenset[str]:
    """Return the terms of a sentence without the act, and without Chinese pairs, which change with the wording."""
    return frozenset(term for term in content_terms(ACT.sub(" ", sentence)) if term.isascii() or len(term) == 1)


def _related(terms: frozenset[str], statement: Statement) -> bool:
    """Whether a sentence with these terms may be about the statement."""
    return len(terms & statement.terms) >= RELATED_SHARE * len(terms)


def _foreign(sentence: str, statement: Statement) -> bool:
    """Whether the two have no script in common, so that their words cannot be compared."""
    return bool(_CHINESE.search(sentence)) != bool(_CHINESE.search(statement.text))


#: Common names, squashed, which a summary may use even if the conversation uses others.
COMMON_NAMES_LISTED = (
    " github gitlab javascript typescript postgresql mysql sqlite mongodb graphql openai chatgpt deepseek macos"
    " ios ipados iphone ipad youtube linkedin wordpress fastapi numpy pytorch tensorflow latex wechat"
    " powerpoint nodejs nextjs vuejs devops cicd tcpip readme utf8 sha256 base64 http2 ipv4 ipv6 oauth2 restapi"
    " websocket websockets webassembly stackoverflow dockerfile makefile python3 es6 i18n html5 css3 mp3 mp4"
    " b2b a11y"
)
COMMON_NAMES = frozenset(COMMON_NAMES_LISTED.split())
_WORDS_WITH_SLASH = re.compile(r"[A-Za-z]+/[A-Za-z]+")
_FIGURE = re.compile(r"(?<![A-Za-z0-9_.])(\d[\d,]*+(?:[.:/-]\d++)*+)\s?([kKmM万亿千%])?(?![A-Za-z0-9_]*[A-Za-z_])")
_SEPARATORS = re.compile(r"[.:/-]")
_LONGEST_SCALED = 12  # characters of a figure with a scale unit (k, m, 万)
_FEWEST_DIGITS = 3  # shorter figures may be the summary's own counts


def named_in(sentence: str) -> list[str]:
    """Return the names and figures in a sentence that must come from the conversation."""
    names = [name for name in names_in(sentence) if not _WORDS_WITH_SLASH.fullmatch(name)]
    return [name for name in names if squashed(name) not in COMMON_NAMES] + [figure for figure, _ in _figures(sentence)]


def invented_in(sentence: str, evidence: Evidence) -> list[str]:
    """Return the names and figures in a sentence that the conversation does not have.

    Example: "fixed in ghost.py", where nobody mentioned ghost.py -> ["ghost.py"]
    """
    figures = dict(_figures(sentence))
    return [
        name
        for name in named_in(sentence)
        if (
            not _figure_known(name, figures[name], evidence)
            if name in figures
            else squashed(name) not in evidence.known
        )
    ]


def _figures(sentence: str) -> Iterator[tuple[str, str]]:
    for match in _FIGURE.finditer(sentence):
        figure = match[1].replace(",", "").rstrip(".")
        if len(figure) - figure.count(".") >= _FEWEST_DIGITS:
            yield figure, (match[2] or "").lower()


def _figure_known(figure: str, unit: str, evidence: Evidence) -> bool:
    if figure in evidence.figures:
        return True
    pieces = [piece.lstrip("0") for piece in _SEPARATORS.split(figure)]
    if len(pieces) > 2 or ":" in figure or "-" in figure or "/" in figure:  # a date, a time, a version
        return all(piece in evidence.figures or piece.zfill(2) in evidence.figures or not piece for piece in pieces)
    if any(known.startswith(figure) for known in evidence.figures if "." in known):
        return True
    return (
        unit in TIMES and len(figure) <= _LONGEST_SCALED and str(round(float(figure) * TIMES[unit])) in evidence.figures
    )
