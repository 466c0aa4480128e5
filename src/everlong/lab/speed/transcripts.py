"""Synthetic transcripts of a tool-using agent, in OpenAI chat format: the same seed and size give the same text.

They have code, JSON, logs and search results of 200 to 20,000 tokens, a little Chinese, some reasoning, and a ticket
number in every request. Everything is made up here. The order of the random draws is part of the format: figures of
earlier runs are comparable only while it does not change.
"""

import json
import math
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import md5

from everlong.lab.peers.rules import Message, message_tokens

__all__ = ["TOOLS", "Transcript", "build", "build_talk"]

WORDS: list[str] = re.findall(
    "[a-z]+",
    "cache retry session handler buffer token window prune router store index worker queue stream parse merge "
    "config plugin budget schema field value error timeout client server request response loop agent tool prompt "
    "commit branch deploy node graph latency metric trace span socket thread future lock event batch shard",
)
CHINESE = (
    "上下文窗口即将耗尽,需要压缩历史消息。",
    "请检查配置文件中的超时设置是否正确。",
    "数据库连接池在高并发下出现泄漏,建议增加监控。",
    "该函数在处理空列表时会抛出异常。",
    "用户希望导出的报告包含每日的令牌用量。",
    "测试已经通过,但是性能仍未达到预期目标。",
    "我们决定把默认的摘要模型换成更便宜的版本。",
    "日志显示第三次重试之后服务恢复正常。",
)
SIGNATURES = (
    ("read_file", "Read a file", "path"),
    ("http_get", "GET a JSON API", "url"),
    ("tail_log", "Read the end of a log", "service"),
    ("grep", "Search the tree", "pattern"),
)
TOOLS: list[Message] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]},
        },
    }
    for name, description, field in SIGNATURES
]
SYSTEM = "You are a careful software engineering agent. Workspace /app. "
LAST_QUESTION = "Final question: which ticket did I name first, and what was wrong in the last log? FINAL-USER-MARK"
SMALLEST_RESULT, LARGEST_RESULT = 200, 20_000  # approximate tokens; drawn on a logarithmic scale


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation, its tool schemas, and the tokens of its messages."""

    messages: list[Message]
    tools: list[Message]
    tokens: int


class _Author:
    """Draws at random. Each `…_result` writes about as many tokens as requested."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.dice = random.Random(seed)
        self.calls = 0

    def word(self) -> str:
        return self.dice.choice(WORDS)

    def words(self, count: int) -> str:
        return " ".join(self.word() for _ in range(count))

    def chinese(self) -> str:
        return self.dice.choice(CHINESE)

    def identifier(self) -> str:
        return f"{self.word()}_{self.word()}"

    def path(self) -> str:
        return f"src/{self.word()}/{self.word()}_{self.word()}.py"

    def hexadecimal(self, digits: int = 8) -> str:
        return f"{self.dice.getrandbits(4 * digits):0{digits}x}"

    def result_size(self, largest: int) -> int:
        drawn = math.exp(self.dice.uniform(math.log(SMALLEST_RESULT), math.log(LARGEST_RESULT)))
        return int(min(largest, drawn))

    def function(self) -> list[str]:
        name = self.identifier()
        lines = [
            f"def {name}(self, {self.word()}, {self.word()}={self.dice.randint(0, 99)}):",
            f'    """{self.words(9).capitalize()}."""',
            f"    if {self.word()} is None or len({self.word()}) > {self.dice.randint(1, 4096)}:",
            f'        raise ValueError(f"{self.words(3)} {{{self.word()}!r}}")',
            f"    for {self.word()} in self.{self.identifier()}.items():",
            f"        self.{self.identifier()}[{self.identifier()!r}] = "
            f'{self.identifier()}({self.identifier()}, key="{self.hexadecimal()}")',
            f"    return self.{self.identifier()}",
            "",
        ]
        if self.dice.random() < 0.15:
            lines.insert(1, f"    # {self.chinese()}")
        return lines

    def file_result(self, tokens: int) -> str:
        lines: list[str] = []
        written = 0
        while written < tokens:
            for line in self.function():
                lines.append(f"{len(lines) + 1:5d}\t{line}")
                written += 4 + len(line) // 4
        return "\n".join(lines)

    def json_result(self, tokens: int) -> str:
        items = [self.json_item(self.calls * 10_000 + index) for index in range(math.ceil(tokens / 105))]
        indent = self.dice.choice([None, 2])
        return json.dumps({"total": len(items), "items": items}, ensure_ascii=False, indent=indent)

    def json_item(self, number: int) -> Message:
        return {
            "id": number,
            "uuid": self.hexadecimal(32),
            "name": self.identifier(),
            "status": self.dice.choice(["ok", "ok", "ok", "failed", "pending"]),
            "latency_ms": round(self.dice.random() * 900, 3),
            "tags": [self.word() for _ in range(3)],
            "owner": {"team": self.word(), "email": f"{self.identifier()}@example.com"},
            "note": self.chinese() if self.dice.random() < 0.2 else self.words(8),
        }

    def log_result(self, tokens: int) -> str:
        lines: list[str] = []
        written = 0
        second = 1_790_000_000 + self.dice.randint(0, 10**6)
        while written < tokens:
            second += self.dice.randint(0, 3)
            level = self.dice.choices(["INFO", "DEBUG", "WARN", "ERROR"], [60, 30, 7, 3])[0]
            lines.append(
                f"2026-10-{second // 86400 % 28 + 1:02d}T{second // 3600 % 24:02d}:{second // 60 % 60:02d}:"
                f"{second % 60:02d}.{self.dice.randint(0, 999):03d}Z {level:<5} "
                f"[{self.identifier()}-{self.dice.randint(1, 16)}] req={self.hexadecimal()} "
                f"{self.word()}={self.dice.randint(0, 99999)} {self.words(5)}"
            )
            if level == "ERROR":
                lines.append(
                    f'Traceback (most recent call last):\n  File "/app/{self.path()}", '
                    f"line {self.dice.randint(1, 900)}, in {self.identifier()}\nRuntimeError: {self.words(6)}"
                )
                written += 40
            written += 45
        return "\n".join(lines)

    def grep_result(self, tokens: int) -> str:
        return "\n".join(
            f"{self.path()}:{self.dice.randint(1, 2000)}:    {self.identifier()} = "
            f"self.{self.identifier()}({self.word()}, {self.identifier()})"
            for _ in range(math.ceil(tokens / 27))
        )

    def call_and_result(self, largest: int) -> tuple[Message, Message]:
        self.calls += 1
        call = f"call_{md5(b'%d-%d' % (self.seed, self.calls)).hexdigest()[:24]}"
        kind = self.dice.choice(["file", "json", "log", "grep"])
        size = self.result_size(largest)
        # One path, address, service and pattern each time, in this order, whichever of them is used.
        offered = {
            "file": ("read_file", {"path": self.path()}),
            "json": ("http_get", {"url": f"http://svc/{self.identifier()}"}),
            "log": ("tail_log", {"service": self.identifier()}),
            "grep": ("grep", {"pattern": self.identifier()}),
        }
        writers: dict[str, Callable[[int], str]] = {
            "file": self.file_result,
            "json": self.json_result,
            "log": self.log_result,
            "grep": self.grep_result,
        }
        name, arguments = offered[kind]
        function = {"name": name, "arguments": json.dumps(arguments)}
        return (
            {"id": call, "type": "function", "function": function},
            {"role": "tool", "tool_call_id": call, "name": name, "content": writers[kind](size)},
        )

    def question(self, turn: int) -> Message:
        ticket = f"PIN-{self.hexadecimal(10)}"
        text = (
            f"Turn {turn}: please {self.words(5)} and fix the {self.identifier()} in {self.path()}. "
            f"Remember ticket {ticket}. {self.chinese() if self.dice.random() < 0.3 else self.words(25)}"
        )
        return {"role": "user", "content": text}

    def step(self, largest: int) -> Iterator[Message]:
        """Yield an assistant's message with one to four calls, then their results."""
        message: Message = {"role": "assistant", "content": self.words(20) if self.dice.random() < 0.6 else None}
        message["tool_calls"] = []
        if self.dice.random() < 0.4:
            thoughts = ". ".join(self.words(12) for _ in range(self.dice.randint(3, 20)))
            message["reasoning_content"] = f"Let me think. {thoughts}"
        results = []
        for _ in range(self.dice.randint(1, 4)):
            call, result = self.call_and_result(largest)
            message["tool_calls"].append(call)
            results.append(result)
        yield message
        yield from results

    def answer(self, turn: int) -> Message:
        return {"role": "assistant", "content": f"Done with turn {turn}. {self.words(60)} {self.chinese()}"}


def build(tokens: int, seed: int = 7, *, largest: int | None = None) -> Transcript:
    """Return a transcript of about `tokens`; results have at most about `largest` (default: a twelfth, min. 400)."""
    author = _Author(seed)
    cap = max(400, tokens // 12) if largest is None else largest
    opening = SYSTEM + author.words(220) + "\n" + "\n".join(CHINESE[:3])
    messages: list[Message] = []
    counted = 0

    def add(message: Message) -> None:
        nonlocal counted
        messages.append(message)
        counted += message_tokens(message)

    add({"role": "system", "content": opening})
    turn = 0
    while not turn or counted < tokens * 0.985:
        turn += 1
        add(author.question(turn))
        for _ in range(author.dice.randint(1, 3)):
            for message in author.step(cap):
                add(message)
            if counted >= tokens:
                break
        add(author.answer(turn))
    add({"role": "user", "content": LAST_QUESTION})
    return Transcript(messages, TOOLS, counted)


LETTERS = "etaoinshrdlucmfwypvbgk"
VOCABULARY = 12_000  # made-up words of a talk; some are frequent, most are rare
TALK_SYSTEM = "You are a friend who remembers. "


def build_talk(tokens: int, seed: int = 7) -> Transcript:
    """Return a talk of about `tokens` between a user and an assistant, who calls no tools and gives long answers."""
    dice = random.Random(seed)
    words = ["".join(dice.choices(LETTERS, k=dice.randint(3, 10))) for _ in range(VOCABULARY)]
    weights = [1 / (rank + 5) for rank in range(VOCABULARY)]

    def said(number: int) -> str:
        chosen = dice.choices(words, weights, k=number)
        sentences = [" ".join(chosen[at : at + 12]).capitalize() + "." for at in range(0, number, 12)]
        return "\n".join(" ".join(sentences[at : at + 4]) for at in range(0, len(sentences), 4))

    messages: list[Message] = [{"role": "system", "content": TALK_SYSTEM + said(100)}]
    counted = message_tokens(messages[0])
    turn = 0
    while not turn or counted < tokens:
        turn += 1
        met = f"Note {turn}: on day {turn % 28 + 1} I met {dice.choice(words).capitalize()}. "
        for role, text in (("user", met + said(dice.randint(20, 200))), ("assistant", said(dice.randint(60, 700)))):
            messages.append({"role": role, "content": text})
            counted += message_tokens(messages[-1])
    messages.append({"role": "user", "content": f"Whom did I meet on day 12, and what about {dice.choice(words)}?"})
    return Transcript(messages, TOOLS, counted + message_tokens(messages[-1]))
