"""Acts that want a user's word because they cannot be taken back, as rows with their samples."""

import re
from dataclasses import dataclass

__all__ = ["ACT", "RISKS", "Risk", "acts_in"]


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
#: All rows at once; the name of the group says which.
ACT = re.compile("|".join(f"(?P<{risk.name}>{risk.pattern.pattern})" for risk in RISKS), re.IGNORECASE)

_FORBIDDING = re.compile(
    r"(?:\bnever|\bnot|n['’]t|\bno|\bwithout|\bavoid|\bstop)(?:\W+\w+){0,3}\W*$"
    r"|(?:不要|别|禁止|不能|不准|不得|勿|不可|避免|不)[\u3400-\u9fff]{0,4}\W*$",
    re.IGNORECASE,
)
NEAR = 30  # characters before an act in which it may be forbidden


def acts_in(text: str) -> frozenset[tuple[str, bool]]:
    """The acts a text speaks of, and whether each is forbidden there. Example: "never delete" -> {("delete", True)}"""
    found = set()
    for act in ACT.finditer(text):
        before = text[max(0, act.start() - NEAR) : act.start()]
        found.add((act.lastgroup or "", _FORBIDDING.search(before) is not None))
    return frozenset(found)
