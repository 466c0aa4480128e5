"""What a summary says users asked for or approved, held against what users said.

Facts repeat the user's own words anyway, so a claim that nothing bears out goes, rather than stands. Claims about acts
that cannot be taken back need a user who spoke of that act, and who did not forbid it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from everlong.summarize.evidence import Evidence, Statement, content_terms
from everlong.summarize.sentences import plain_key

__all__ = ["RISKS", "Risk", "claimed", "unfounded", "unsaid", "unwarranted"]


@dataclass(frozen=True, slots=True)
class Risk:
    """A kind of act that wants a user's word, and how it is said, with a sample."""

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
        r"发送|发给|邮件|转发|上传|分享|寄给|外传",
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

_FORBIDDING = re.compile(
    r"(?:\bnever|\bnot|n['’]t|\bno|\bwithout|\bavoid|\bstop)(?:\W+\w+){0,3}\W*$"
    r"|(?:不要|别|禁止|不能|不准|不得|勿|不可|避免|不)[\u3400-\u9fff]{0,4}\W*$",
    re.IGNORECASE,
)
#: A step that asks before it acts.
_ASKING = re.compile(
    r"\b(?:ask\w*|whether|confirm|check with|discuss\w*|clarify|wait\w*|pending|until)\b|询问|是否|等待|讨论|确认",
    re.IGNORECASE,
)
NEAR = 30  # characters before an act in which it may be forbidden

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
#: What says that a user approved of something. Forms that wait for it are told apart below.
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
#: Right before a claim: nobody has said it yet.
_PENDING = re.compile(
    r"(?:\b(?:if|until|unless|once|whether|pending|before|awaiting|that) (?:the )?"
    r"|等待?|待|需要?|须|请|让|由|如果?|若|是否|直到|除非|一旦|未经|未获得?|没有?|征求|询问|提示|要求|须经|需经)\s*$",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:not|never|yet|no)\b|n['’]t\b|未|没", re.IGNORECASE)
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_CUT_MARK = re.compile(r"\[?…[^\]]{0,20}\]?|\[redacted\]|\.\.\.")
RELATED_SHARE = 0.4  # of the terms of an approval that stand in one statement
TOLD_SHARE = 0.5  # of the terms of a request that anybody used
SHORTEST_PIECE = 2  # letters; less proves nothing


def claimed(sentence: str) -> str:
    """Whether a sentence says that a user "approved" or "asked"; "" if neither."""
    for kind, pattern in (("approved", APPROVALS), ("asked", REQUESTS)):
        for found in pattern.finditer(sentence):
            if not _PENDING.search(sentence[: found.start()]) and not _DENIED.search(found[0]):
                return kind
    return ""


def unfounded(sentence: str, evidence: Evidence) -> str:
    """The reason why a claim about a user cannot stand; "" if it can, or is none."""
    kind = claimed(sentence)
    if not kind:
        return ""
    terms, acts = _telling_terms(sentence), _acts(sentence)
    related = [one for one in evidence.statements if _related(terms, one) or (not acts and _foreign(sentence, one))]
    reason = "an approval that no user gave" if kind == "approved" else "a request that no user made"
    if not acts <= _acts_told(related):
        return reason
    if kind == "approved":
        return "" if related and (terms or any(one.assents for one in related)) else reason
    foreign = all(_foreign(sentence, one) for one in evidence.statements)
    return "" if foreign or len(terms & evidence.talked) >= TOLD_SHARE * len(terms) else reason


def unwarranted(step: str, evidence: Evidence) -> str:
    """Why something is nothing to do next: an act nobody spoke of, or that a user forbade; "" if it may be done."""
    acts, terms = {name for name, forbidden in _acts(step) if not forbidden}, _telling_terms(step)
    if not acts or _ASKING.search(step):
        return ""
    asked = _acts_told([one for one in evidence.statements if _related(terms, one)])
    said = _acts_told([one for one in evidence.answers if _related(terms, one)])
    for name in sorted(acts):
        if (name, False) in asked:
            continue
        if (name, True) in asked:
            return "a step that a user forbade"
        if (name, False) not in said:
            return "a step that nobody spoke of"
    return ""


def unsaid(request: str, evidence: Evidence) -> bool:
    """Whether no user said this, word for word; marks of cuts and redactions aside."""
    pieces = [key for piece in _CUT_MARK.split(request) if len(key := plain_key(piece)) >= SHORTEST_PIECE]
    said = [plain_key(statement.text) for statement in evidence.statements]
    return not pieces or not any(all(piece in text for piece in pieces) for text in said)


def _acts(text: str) -> set[tuple[str, bool]]:
    """The acts a text speaks of, each with whether it is forbidden there."""
    found = set()
    for risk in RISKS:
        for act in risk.pattern.finditer(text):
            before = text[max(0, act.start() - NEAR) : act.start()]
            found.add((risk.name, _FORBIDDING.search(before) is not None))
    return found


def _acts_told(statements: Iterable[Statement]) -> set[tuple[str, bool]]:
    return {act for statement in statements for act in _acts(statement.text)}


def _telling_terms(sentence: str) -> frozenset[str]:
    """What a sentence is about apart from the act. Pairs of Chinese characters change with the wording: left out."""
    for risk in RISKS:
        sentence = risk.pattern.sub(" ", sentence)
    return frozenset(term for term in content_terms(sentence) if term.isascii() or len(term) == 1)


def _related(terms: frozenset[str], statement: Statement) -> bool:
    """Whether the statement may be what a sentence of these terms speaks of."""
    return len(terms & statement.terms) >= RELATED_SHARE * len(terms)


def _foreign(sentence: str, statement: Statement) -> bool:
    """Whether they have no script in common, so that their words cannot be compared."""
    return bool(_CHINESE.search(sentence)) != bool(_CHINESE.search(statement.text))
