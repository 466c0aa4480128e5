"""What the agent says to models in their own language: one table per language.

A language is a table and a row in `LANGUAGES`; no other module asks which language it is. The names in braces are
filled in where a text is used. Models read these texts: a changed letter is a changed request.
"""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["ENGLISH", "LANGUAGES", "Words", "words_in"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """All texts of one language."""

    #: A message that no user wrote: `text`.
    event: str
    #: Requests of the user that this turn has not answered yet; they follow on the next lines.
    unanswered: str
    #: The note after which a turn ends, by the limit it has reached: `steps`.
    limits: Mapping[str, str]

    #: The result of a call that has none: because the turn was over, the program died, or the user interrupted it.
    not_made: str
    crashed: str
    interrupted: str
    #: The result of a call that was not allowed, and the line that a person reads: `name`, `reason`.
    refused: str
    refused_line: str
    #: The reason by the kind of the refusal: `detail` is the pattern that would allow it or has denied it, or an error.
    refusals: Mapping[str, str]
    #: The note after a result that came again: `count`.
    repeated: str

    #: How a sub-agent ended where it was not done: by its kind, any other with its `error`.
    subagent_ends: Mapping[str, str]
    subagent_failed: str
    #: The title of what a sub-agent did before it stopped, and the line where it did nothing.
    subagent_work: str
    subagent_nothing: str
    #: The mark where a sub-agent's answer is cut: `left`, `thread`.
    subagent_cut: str


ENGLISH = Words(
    event="[An event of the system, not a message of the user]\n{text}",
    unanswered="[Kept by the system: the user asked for this before in this turn, and it has no answer yet]",
    limits={
        "most steps": "[All {steps} steps of this turn are used. Make no more calls. "
        "Say what is done, what is not, and what comes next.]",
        "most tokens": "[This turn has used its tokens. Make no more calls. "
        "Say what is done, what is not, and what comes next.]",
    },
    not_made="[not made: the turn was at its end.]",
    crashed="[interrupted: the program ended before a result was kept. The call may or may not have done its work; "
    "look before you make it again.]",
    interrupted="[interrupted by the user: there is no result. The call may have done part of its work.]",
    refused="{name} was not allowed, and nothing was done: {reason}. Do not try it again unless the user asks for it.",
    refused_line="{name} was not allowed: {reason}",
    refusals={
        "answered": "the user said no, or gave no answer",
        "nobody": 'nobody can be asked here; --allow "{detail}" allows it, --yes allows everything',
        "guarded": "it changes what decides about permissions, and nobody can be asked here",
        "denied": "the pattern {detail} denies it",
        "never": "the setting approval is never",
        "too long": "it is too long to be shown to the user, and nothing is allowed unseen. Write it to a file with "
        'write_file and run that, or make it shorter; --allow "{detail}" allows it unseen',
        "broken": "the permissions cannot be read: {detail}",
    },
    repeated="[note: this call gave this same result {count} times. Do something else, or answer with what you have.]",
    subagent_ends={
        "overflow": "The sub-agent's context does not fit its window; a shorter form was refused too. It was stopped.",
        "most steps": "The sub-agent used all its steps before it was done.",
        "most tokens": "The sub-agent used all its tokens before it was done.",
    },
    subagent_failed="The sub-agent stopped: {error}",
    subagent_work="Done before it stopped:",
    subagent_nothing="nothing",
    subagent_cut="[… {left:,} more characters: read_subagent with thread {thread!r} returns the whole]",
)

CHINESE = Words(
    event="[系统事件，不是用户的消息]\n{text}",
    unanswered="[系统保留：用户在本轮中先前提出以下要求，尚未得到回答]",
    limits={
        "most steps": "[本轮的 {steps} 个步骤已用完。不要再调用工具。请说明已完成什么、未完成什么、下一步是什么。]",
        "most tokens": "[本轮的 token 预算已用完。不要再调用工具。请说明已完成什么、未完成什么、下一步是什么。]",
    },
    not_made="[未执行：本轮已结束。]",
    crashed="[已中断：程序在保存结果之前结束。该调用可能已执行，也可能未执行；再次调用前请先检查。]",
    interrupted="[已被用户中断：没有结果。该调用可能已完成一部分。]",
    refused="{name} 未获允许，没有执行任何操作：{reason}。除非用户要求，请不要再试。",
    refused_line="{name} 未获允许：{reason}",
    refusals={
        "answered": "用户拒绝了，或没有回答",
        "nobody": '这里没有人可以询问；--allow "{detail}" 允许此项，--yes 允许全部',
        "guarded": "它会更改决定权限的文件，而这里没有人可以询问",
        "denied": "规则 {detail} 禁止此项",
        "never": "设置 approval 为 never",
        "too long": "内容太长，无法完整展示给用户，看不到的内容不予允许。请用 write_file 写入文件后再运行，或改短；"
        '--allow "{detail}" 可不经展示直接允许',
        "broken": "无法读取权限设置：{detail}",
    },
    repeated="[提示：同样的调用已 {count} 次得到同样的结果。请换一种做法，或根据已有信息回答。]",
    subagent_ends={
        "overflow": "子代理上下文溢出，紧急压缩后仍超限，任务中止。",
        "most steps": "子代理在完成之前用完了步骤。",
        "most tokens": "子代理在完成之前用完了 token 预算。",
    },
    subagent_failed="子代理已停止：{error}",
    subagent_work="中止前已完成：",
    subagent_nothing="无",
    subagent_cut="[…… 还有 {left:,} 个字符：用 read_subagent 读取线程 {thread!r} 可得全文]",
)

#: The languages by the code that `relevance.language_of` returns and the setting `language` takes.
LANGUAGES: Mapping[str, Words] = {"en": ENGLISH, "zh": CHINESE}


def words_in(language: str) -> Words:
    """Return the texts of a language; English where it has no table."""
    return LANGUAGES.get(language, ENGLISH)
