"""The parts of a summary in each style, used by the prompt, the parser and the output. Data only."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from everlong.compress import SummaryStyle

__all__ = [
    "CONTEXT_LIMIT",
    "FREE_LIMIT",
    "LISTS",
    "PARTS",
    "WORD_LIMIT",
    "Field",
    "Part",
    "Style",
    "field_named",
    "prose_limit",
]

Style: TypeAlias = SummaryStyle
Field: TypeAlias = Literal[
    "context", "decisions", "constraints", "open_questions", "file_changes", "done", "next", "requests"
]
LISTS: tuple[Field, ...] = ("decisions", "constraints", "open_questions", "file_changes", "done", "next")

FREE_LIMIT = 500  # characters of a summary in prose
CONTEXT_LIMIT = 200  # characters of the context of a structured summary
FALLBACK_LIMIT = 2_000  # characters of prose if sections were requested but none came; nanobot's document: FREE_LIMIT
WORD_LIMIT = 200  # words of a static-buffer summary, or twice as many Chinese characters


@dataclass(frozen=True, slots=True)
class Part:
    """One part: its field, its JSON key, and by language its heading and what belongs in it."""

    field: Field
    key: str
    heading: Mapping[str, str]
    asks: Mapping[str, str]


CONTEXT = Part(
    "context",
    "context",
    {"en": "Context", "zh": "背景"},
    {
        "en": f"what this is about and where it stands, at most {CONTEXT_LIMIT} characters, as one string",
        "zh": f"在做什么、进展到哪里，最多 {CONTEXT_LIMIT} 个字符，一个字符串",
    },
)
STRUCTURED = (
    CONTEXT,
    Part(
        "decisions",
        "decisions",
        {"en": "Decisions", "zh": "决定"},
        {"en": "what was decided, and why", "zh": "做出的决定及原因"},
    ),
    Part(
        "constraints",
        "constraints",
        {"en": "Constraints", "zh": "约束"},
        {"en": "rules, limits and preferences that still hold", "zh": "仍然有效的规则、限制和偏好"},
    ),
    Part(
        "open_questions",
        "open_questions",
        {"en": "Open questions", "zh": "未决问题"},
        {"en": "what is not settled", "zh": "尚未解决的问题"},
    ),
    Part(
        "file_changes",
        "file_changes",
        {"en": "File changes", "zh": "文件变更"},
        {"en": "which file was changed, and how", "zh": "改了哪个文件、改了什么"},
    ),
    Part(
        "done",
        "done",
        {"en": "Done", "zh": "已完成"},
        {"en": "what is finished, with its result", "zh": "已经完成的事及结果"},
    ),
    Part(
        "next", "next", {"en": "Next", "zh": "下一步"}, {"en": "what was agreed to do next", "zh": "约定接下来要做的事"}
    ),
)
BUFFER = (
    Part(
        "done",
        "what_happened",
        {"en": "What happened", "zh": "发生了什么"},
        {"en": "what happened", "zh": "发生了什么"},
    ),
    Part(
        "constraints",
        "important_details",
        {"en": "Important details", "zh": "重要细节"},
        {"en": "names, figures, choices that must not be lost", "zh": "不能丢失的名称、数字和选择"},
    ),
    Part(
        "context",
        "ongoing_context",
        {"en": "Ongoing context", "zh": "当前情况"},
        {"en": "what is going on now, as one string", "zh": "现在正在进行什么，一个字符串"},
    ),
)
CHAT = (
    Part(
        "done",
        "finished_tasks",
        {"en": "Finished tasks", "zh": "已完成的任务"},
        {"en": "tasks that are finished", "zh": "已经完成的任务"},
    ),
    Part(
        "context",
        "current_state",
        {"en": "Current state", "zh": "当前状态"},
        {"en": "where things stand now, as one string", "zh": "目前的状态，一个字符串"},
    ),
    Part(
        "constraints",
        "key_context",
        {"en": "Key context", "zh": "关键信息"},
        {"en": "paths, code, names and figures that are still needed", "zh": "仍然需要的路径、代码、名称和数字"},
    ),
    Part(
        "next", "next_steps", {"en": "Next steps", "zh": "后续步骤"}, {"en": "what comes next", "zh": "接下来要做的事"}
    ),
)
FREE = (Part("context", "summary", {"en": "Summary", "zh": "摘要"}, {"en": "the summary", "zh": "摘要"}),)

PARTS: dict[Style, tuple[Part, ...]] = {
    "structured": STRUCTURED,
    "rolling": STRUCTURED,
    "buffer": BUFFER,
    "chat": CHAT,
    "free": FREE,
}

#: Other names that models use for the parts, as plain keys.
ALIASES: dict[Field, str] = {
    "context": (
        "context background overview summary goal objective state currentstate status currentstatus ongoingcontext"
        " situation primaryrequest intent focus conversationsummary 背景 上下文 概述 摘要 总结 目标 现状 当前状态"
        " 当前情况 目前状态 当前进展 对话摘要 对话总结 正在进行"
    ),
    "decisions": "decision decisions keydecisions decisionsmade choices 决定 决策 关键决策 重要决定 关键决定"
    " 已做决定 结论",
    "constraints": (
        "constraint constraints rules limits preferences constraintspreferences constraintsandpreferences keycontext"
        " criticalcontext importantdetails details keydetails keyfacts keyinformation requirements notes 约束 约束条件"
        " 限制 规则 偏好 要求 约束与偏好 关键信息 关键上下文 重要细节 重要信息 细节 注意事项 关键细节"
    ),
    "open_questions": (
        "openquestions questions openissues unresolved unresolvedissues issues blockers blocked"
        " 未决问题 待解决问题 开放问题 遗留问题 问题 未解决的问题 待确认"
    ),
    "file_changes": (
        "filechanges fileschanged changedfiles modifiedfiles filesmodified files relevantfiles changes"
        " 文件变更 文件改动 文件修改 修改的文件 变更文件 相关文件 文件"
    ),
    "done": (
        "done completed completedtasks finished finishedtasks progress accomplished whathappened workdone completedwork"
        " 已完成 完成 已完成的任务 完成的任务 完成的工作 已完成工作 进展 发生了什么 经过 已完成任务"
    ),
    "next": (
        "next nextsteps nextstep nextactions todo todos remaining remainingwork pending pendingtasks opentasks"
        " actionitems"
        " 下一步 后续步骤 后续 待办 待办事项 未完成 剩余工作 接下来 下一步计划 后续计划 计划"
    ),
    "requests": "userrequests requests userrequest userasks userinstructions pendinguserasks 用户请求 用户要求"
    " 用户指令",
}
FIELD_OF: dict[str, Field] = {alias: field for field, names in ALIASES.items() for alias in names.split()}
_NOT_NAMING = re.compile(r"[\W_\d]+|一|二|三|四|五|六|七|八|九|十(?=、)")


def prose_limit(style: Style) -> int:
    """Return the most characters of a summary in prose, by the requested style."""
    return FREE_LIMIT if style in ("free", "rolling") else FALLBACK_LIMIT


def field_named(name: str) -> Field | None:
    """Return the field that a heading or key means; None if unknown. Example: "## 3. Key decisions:" -> "decisions" """
    return FIELD_OF.get(re.sub(r"[\W_\d]+", "", name.lower())) or FIELD_OF.get(_NOT_NAMING.sub("", name.lower()))
