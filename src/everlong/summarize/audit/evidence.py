"""The evidence for a summary: the texts of the messages it covers, of the previous summary, and of the user's focus.

It extracts statements, terms, figures and risky acts: irreversible acts that need a user's approval. It makes no
judgement.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from everlong.core import Message, Reasoning, Role, Text, ToolCall, ToolResult, is_framed, user_text
from everlong.relevance import terms_of, words_of
from everlong.summarize.summary import Summary, all_lines
from everlong.summarize.text import sentences_of

__all__ = [
    "ACT",
    "RISKS",
    "TIMES",
    "Evidence",
    "Risk",
    "Statement",
    "acts_in",
    "content_terms",
    "evidence_of",
    "squashed",
]


@dataclass(frozen=True, slots=True)
class Risk:
    """A kind of act that needs a user's approval: its name, its phrases and a sample."""

    name: str
    pattern: re.Pattern[str]
    sample: str


def _risk(name: str, english: str, chinese: str, sample: str) -> Risk:
    return Risk(name, re.compile(rf"\b(?:{english})|{chinese}", re.IGNORECASE), sample)


RISKS: tuple[Risk, ...] = (
    _risk(
        "delete",
        r"delet\w*|remov\w*|drop(?:s|ped|ping)?\b|wip(?:e|ed|es|ing)\b|eras\w*|purg\w*|destroy\w*|rm -|get(?:ting)? rid"
        r"|clean(?:s|ed|ing)?[ -]?(?:up|out)|truncat\w*|uninstall\w*|throw(?:n|ing)? (?:it )?away",
        r"删|移除|去掉|清空|清除|清理|销毁|抹掉|卸载",
        "delete prod",
    ),
    _risk(
        "publish",
        r"deploy\w*|releas\w*|publish\w*|ship(?:s|ped|ping)?\b|roll(?:s|ed|ing)?[ -]?out|go(?:ing)?[ -]live|launch\w*",
        r"部署|发布|上线|投产",
        "deploy to production",
    ),
    _risk("push", r"(?:force-?)?push\w*|merg\w*|commit\w*|rebas\w*", r"推送|合并|提交|推到", "force-push to main"),
    _risk(
        "send",
        r"send\w*|sent\b|e-?mail\w*|forward(?:ed|ing)?\b|post(?:ed|ing)\b|upload\w*|shar(?:e|ed|ing)\b"
        r"|exfiltrat\w*|leak\w*",
        r"发(?:送|给|出|往|到|[，。,；！？!?]|$)|邮件|转发|上传|分享|寄给|外传",
        "email the keys",
    ),
    _risk(
        "pay",
        r"pay\w*|paid\b|purchas\w*|buy\w*|bought\b|transfer\w*|refund\w*",
        r"支付|付款|购买|转账|退款|下单",
        "pay the invoice",
    ),
    _risk(
        "disable",
        r"disabl\w*|turn(?:ed|ing)? off|bypass\w*|skip\w*|overrid\w*|without (?:asking|confirm\w*|approval|review\w*)",
        r"禁用|关闭|关掉|绕过|跳过|无需确认|不用确认|无须确认|不再确认|不经确认",
        "skip all confirmations",
    ),
    _risk(
        "power",
        r"sudo\b|root access|admin\w*|full (?:access|control)|unrestricted|any command|all permissions",
        r"管理员|完全访问|任何命令|不受限制|所有权限|全部权限",
        "full access to the machine",
    ),
    _risk(
        "secret",
        r"passwords?|credentials?|secrets?\b|api[ _-]?keys?|private keys?|access tokens?",
        r"密码|凭据|密钥|口令|访问令牌",
        "the API key",
    ),
)
#: One pattern for all rows; the group name tells which row matched.
ACT = re.compile("|".join(f"(?P<{risk.name}>{risk.pattern.pattern})" for risk in RISKS), re.IGNORECASE)

_FORBIDDING = re.compile(
    r"(?:\bnever|\bnot|n['’]t|\bno|\bwithout|\bavoid|\bstop)(?:\W+\w+){0,3}\W*$"
    r"|(?:不要|别|禁止|不能|不准|不得|勿|不可|避免|不)[\u3400-\u9fff]{0,4}\W*$",
    re.IGNORECASE,
)
NEAR = 30  # characters before an act in which it may be forbidden


def acts_in(text: str) -> frozenset[tuple[str, bool]]:
    """Return the risky acts in a text, and whether it forbids each. Example: "never delete" -> {("delete", True)}"""
    acts = set()
    for act in ACT.finditer(text):
        before = text[max(0, act.start() - NEAR) : act.start()]
        acts.add((act.lastgroup or "", _FORBIDDING.search(before) is not None))
    return frozenset(acts)


ASKED_BEFORE = 2_000  # characters of the answer before a short "yes"
SHORT_ANSWER = 200  # characters
LOOKED_AT = 20_000  # characters of one statement

_NOT_LETTERS = re.compile(r"[\W_]+")
_NUMBER = re.compile(r"(?<![A-Za-z0-9_.])\d+(?:[.,:/-]\d+)*")
_SCALED = re.compile(r"(?<![A-Za-z0-9_.])(\d{1,9}(?:\.\d{1,6})?)\s?([kKmM千万亿])(?![A-Za-z])")
#: The factor of a unit after a figure.
TIMES = {"k": 1_000, "m": 1_000_000, "千": 1_000, "万": 10_000, "亿": 100_000_000}
_SEPARATORS = re.compile(r"[.,:/-]")
_GROUPED = re.compile(r"(?<=\d)[,\u00a0\u202f_](?=\d{3})")
ASSENTING = re.compile(
    r"\b(?:yes|yep|yeah|ok|okay|sure|fine|approved?|confirm(?:ed)?|agreed?|go ahead|go for it|do it|proceed|lgtm"
    r"|looks good|sounds"
    r" good|please do|correct|right|perfect|great|good)\b|好|可以|同意|批准|确认|没问题|行|对|继续|就这样|是的|嗯",
    re.IGNORECASE,
)
#: A refusal anywhere in an answer; `DECLINING` counts only at its beginning.
REFUSING = re.compile(r"\b(?:no|nope|nah|not|never|wait|hold on)\b|n['’]t\b|不|别|等等|先等", re.IGNORECASE)
DECLINING = re.compile(
    r"\W*(?:no\b|nope|not |don['’]t|do not|wait|stop|cancel|hold on|instead|rather|不|别|先不|先别|算了|等等|取消)",
    re.IGNORECASE,
)
CHOICE = 4  # characters; an answer as short as "B", "2" or "第二个" counts as a yes
#: Words that occur in any sentence about what somebody wants, whatever its topic.
GENERIC = frozenset(
    term
    for word in words_of(
        "user users human asked ask asks want wants wanted request requested instruct instructed told said need"
        " needs prefer"
        " would like approved approve approval confirmed confirm confirmation authorised authorized agreed allowed"
        " permission granted gave given accepted explicitly already also then plan proposal proposed approach change"
        " changes suggestion option design solution step steps task work help thing things please assistant go ahead"
        " now all any some one two should must"
        " 用户要求请求希望想要指示需要表示批准同意确认授权允许许可已经明确方案计划建议修改做法这个那个进行可以助手"
    )
    for term, _ in terms_of(word)
)


@dataclass(frozen=True, slots=True)
class Statement:
    """Something that was said (a user's yes includes the question), or a sentence of the previous summary or focus."""

    text: str
    terms: frozenset[str]
    acts: frozenset[tuple[str, bool]]
    assents: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence for a summary. `raw` is every text; `known` the same, squashed to letters and digits."""

    raw: str
    known: str
    figures: frozenset[str]
    #: What users said, squashed, one line each.
    said: str
    statements: tuple[Statement, ...]
    answers: tuple[Statement, ...]
    #: The terms of what users and assistants said, without tool results.
    talked: frozenset[str]


def evidence_of(covered: Sequence[Message], previous: Summary | None, focus: str = "") -> Evidence:
    """Collect the evidence in these messages, the previous summary and the focus."""
    texts = [text for message in covered for text in _texts(message)]
    earlier = [] if previous is None else all_lines(previous)
    raw = _GROUPED.sub("", "\n".join([*texts, *earlier, focus]))
    scaled = {str(round(float(figure) * TIMES[unit.lower()])) for figure, unit in _SCALED.findall(raw)}
    figures = frozenset(_NUMBER.findall(raw)) | scaled
    statements = tuple(_statements(covered, previous, focus))
    answers = tuple(_statement(message.text) for message in covered if message.role is Role.ASSISTANT and message.text)
    return Evidence(
        raw=raw,
        known=squashed(raw),
        figures=figures | {piece for figure in figures for piece in _SEPARATORS.split(figure)},
        said="\n".join(map(squashed, _said_by_users(covered, previous, focus))),
        statements=statements,
        answers=answers,
        talked=frozenset().union(*(statement.terms for statement in (*statements, *answers))),
    )


def squashed(text: str) -> str:
    """Return only letters and digits, in lower case, so that `readFile`, `read_file` and "read file" are equal."""
    return _NOT_LETTERS.sub("", text.lower())


def content_terms(text: str) -> frozenset[str]:
    """Return the terms that say what a sentence is about.

    Example: "the user asked to fix the login" -> {"fix", "login"}
    """
    return frozenset(term for word in words_of(text) for term, _ in terms_of(word)) - GENERIC


def _texts(message: Message) -> Iterator[str]:
    for part in message.parts:
        match part:
            case Text(text) | Reasoning(text):
                yield text
            case ToolCall(name=name, arguments=arguments):
                yield name
                # Line ends and tabs are escaped in arguments and would stick to the names around them.
                yield arguments.replace("\\n", "\n").replace("\\t", "\t").replace("\\/", "/").replace("\\\\", "\\")
            case ToolResult(name=name):
                yield name
                yield part.text
            case _:
                continue


def _said_by_users(covered: Sequence[Message], previous: Summary | None, focus: str) -> Iterator[str]:
    yield from (text for text in map(user_text, covered) if not is_framed(text))
    yield from () if previous is None else previous.facts.requests
    yield focus


def _statements(covered: Sequence[Message], previous: Summary | None, focus: str) -> Iterator[Statement]:
    asked = ""
    for message in covered:
        text = user_text(message).strip()
        if message.role is Role.ASSISTANT:
            asked = message.text
        elif text and not is_framed(text):
            assents = _assents(text)
            yield _statement(f"{asked[-ASKED_BEFORE:]}\n{text}" if assents else text, assents=assents)
            if DECLINING.match(text):
                yield from (_statement(_declined(question)) for question in _questions(asked))
    if previous is not None:
        yield from (_statement(request) for request in previous.facts.requests)
        yield from (_statement(sentence) for line in all_lines(previous) for sentence in sentences_of(line))
    if focus:
        yield _statement(focus)


def _assents(text: str) -> bool:
    """Whether a user's text agrees to the question before it, without any word of refusal.

    Example: "ok, go ahead" -> True
    """
    if len(text) > SHORT_ANSWER or REFUSING.search(text) or DECLINING.match(text):
        return False
    return len(text) <= CHOICE or ASSENTING.search(text) is not None


def _questions(answer: str) -> list[str]:
    return [sentence for sentence in sentences_of(answer[-ASKED_BEFORE:]) if sentence.endswith(("?", "？"))]


def _declined(question: str) -> str:
    """Return the statement that a user makes by declining a question.

    Example: "Should I deploy?" -> "not Should I deploy?"
    """
    return f"不要{question}" if ord(question[0]) > 0x2FFF else f"not {question}"


def _statement(text: str, *, assents: bool = False) -> Statement:
    bounded = text[:LOOKED_AT]
    return Statement(bounded, content_terms(bounded), acts_in(bounded), assents)
