"""The texts that the agent sends to models: one table per language.

To add a language, add a table and its row in `LANGUAGES`; no other module asks for the language. The names in braces
are filled in where a text is used. Models read these texts: a changed letter is a changed request.
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
    #: The note after an answer that broke off, when a person wants the rest of it.
    go_on: str
    #: The note that asks for a last answer, by the limit that the turn has reached: `steps`.
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
    #: The note after a repeated result: `count`.
    repeated: str

    #: How a sub-agent ended that was not done, by the kind of its end; then for all other kinds: `error`.
    subagent_ends: Mapping[str, str]
    subagent_failed: str
    #: The title of what a sub-agent did before it stopped, and the line if it did nothing.
    subagent_work: str
    subagent_nothing: str
    #: The mark where a sub-agent's answer is cut: `left`, `thread`.
    subagent_cut: str


ENGLISH = Words(
    event="[System event, not a message from the user]\n{text}",
    unanswered="[Kept by the system: the user asked for this earlier in this turn, and it has not been answered yet]",
    go_on="[Your last answer was interrupted. Continue exactly where it ends. "
    "Do not repeat anything or add an introduction.]",
    limits={
        "most steps": "[This turn has used all of its {steps} steps. Do not call any more tools. "
        "Say what is done, what is not done, and what comes next.]",
        "most tokens": "[This turn has used all of its tokens. Do not call any more tools. "
        "Say what is done, what is not done, and what comes next.]",
    },
    not_made="[not run: the turn had ended.]",
    crashed="[interrupted: the program ended before the result was stored. The call may or may not have taken effect. "
    "Check before you call it again.]",
    interrupted="[interrupted by the user: there is no result. The call may have taken partial effect.]",
    refused="{name} was not allowed, and nothing was done: {reason}. Do not try it again unless the user asks you to.",
    refused_line="{name} was not allowed: {reason}",
    refusals={
        "answered": "the user denied it or did not answer",
        "nobody": 'there is no one to ask; --allow "{detail}" allows it, --yes allows everything',
        "guarded": "it changes the permissions, and there is no one to ask",
        "denied": "the pattern {detail} denies it",
        "never": 'the approval setting is "never"',
        "too long": "it is too long to show to the user, and nothing is allowed unseen. Write it to a file with "
        'write_file and run that, or make it shorter; --allow "{detail}" allows it unseen',
        "broken": "the permissions cannot be read: {detail}",
    },
    repeated="[note: this call has returned the same result {count} times. "
    "Do something else, or answer with what you have.]",
    subagent_ends={
        "overflow": "The sub-agent was stopped: its context overflowed, and a shorter request was refused too.",
        "most steps": "The sub-agent used all of its steps before it finished.",
        "most tokens": "The sub-agent used all of its tokens before it finished.",
    },
    subagent_failed="The sub-agent stopped: {error}",
    subagent_work="Done before it stopped:",
    subagent_nothing="nothing",
    subagent_cut="[… {left:,} more characters: call read_subagent with thread {thread!r} to read all of it]",
)

CHINESE = Words(
    event="[系统事件，不是用户的消息]\n{text}",
    unanswered="[系统保留：用户在本轮早些时候提出了以下要求，尚未得到回答]",
    go_on="[上一条回答在中途断开了。请从断开处接着写：不要重复已写内容，也不要加开场白。]",
    limits={
        "most steps": "[本轮的 {steps} 个步骤已用完。不要再调用工具。请说明已完成什么、未完成什么、下一步是什么。]",
        "most tokens": "[本轮的 token 预算已用完。不要再调用工具。请说明已完成什么、未完成什么、下一步是什么。]",
    },
    not_made="[未执行：本轮已结束。]",
    crashed="[已中断：程序在保存结果之前结束。该调用可能已执行，也可能未执行；再次调用前请先检查。]",
    interrupted="[用户已中断：没有结果。该调用可能已完成一部分。]",
    refused="{name} 未获允许，没有执行任何操作：{reason}。除非用户要求，请不要再试。",
    refused_line="{name} 未获允许：{reason}",
    refusals={
        "answered": "用户拒绝了，或没有回答",
        "nobody": '没有人可以询问；--allow "{detail}" 允许此项，--yes 允许全部',
        "guarded": "它会更改权限，而没有人可以询问",
        "denied": "规则 {detail} 禁止此项",
        "never": "设置 approval 为 never",
        "too long": "内容太长，无法展示给用户，而未经展示的内容不予允许。请用 write_file 写入文件后再运行，或改短；"
        '--allow "{detail}" 可不经展示直接允许',
        "broken": "无法读取权限设置：{detail}",
    },
    repeated="[提示：这个调用已经 {count} 次返回同样的结果。请换一种做法，或根据已有信息回答。]",
    subagent_ends={
        "overflow": "子代理上下文溢出，紧急压缩后仍超限，任务中止。",
        "most steps": "子代理在完成之前用完了步骤。",
        "most tokens": "子代理在完成之前用完了 token 预算。",
    },
    subagent_failed="子代理已停止：{error}",
    subagent_work="中止前已完成：",
    subagent_nothing="无",
    subagent_cut="[……还有 {left:,} 个字符：用 read_subagent 读取线程 {thread!r} 可查看全文]",
)

#: The languages by the code that `relevance.language_of` returns and the setting `language` takes.
LANGUAGES: Mapping[str, Words] = {"en": ENGLISH, "zh": CHINESE}


def words_in(language: str) -> Words:
    """Return the texts of a language; English if it has no table."""
    return LANGUAGES.get(language, ENGLISH)
