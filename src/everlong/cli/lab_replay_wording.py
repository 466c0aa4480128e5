"""What `everlong lab replay` says on a terminal, in English and Chinese."""

from everlong.cli.maps.wording import Wording
from everlong.cli.terminal.tables import amount

__all__ = ["REPLAY_TEXTS", "ReplayWording"]

#: key -> English ("one|several" where a number decides), Chinese
REPLAY_TEXTS: dict[str, tuple[str, str]] = {
    # --- while it runs --------------------------------------------------------------------------
    "finding": ("reading sessions", "读取会话"),
    "playing": ("replaying", "重放"),
    "no_prices": (
        "no prices are known for {model}: those of {usual} are taken; --prices names others",
        "没有 {model} 的价格：改用 {usual} 的价格；可用 --prices 指定",
    ),
    "no_model": (
        "the sessions name no model: the prices of {usual} are taken; --model or --prices names others",
        "会话没有写明模型：改用 {usual} 的价格；可用 --model 或 --prices 指定",
    ),
    # --- what was replayed ----------------------------------------------------------------------
    "sessions": ("{n} session|{n} sessions", "{n} 个会话"),
    "tokens": ("{n} token|{n} tokens", "{n} token"),
    "counted": ("tokens counted for {model}", "按 {model} 计数"),
    "around": (
        "{front} tokens in front of every request, {reply} kept for the answer",
        "每个请求前有 {front} token，为回答预留 {reply}",
    ),
    "prices": ("prices: {name}", "价格：{name}"),
    "comma": (", ", "，"),
    # --- what was really paid -------------------------------------------------------------------
    "recorded": ("What the files say was paid", "文件记录的实际花费"),
    "recorded_some": (
        "{n} of {all} sessions keeps a record.|{n} of {all} sessions keep a record.",
        "{all} 个会话中有 {n} 个留有记录。",
    ),
    "recorded_unpriced": (
        "{n} request has no known price: not in the sum.|{n} requests have no known price: not in the sum.",
        "{n} 个请求没有已知价格，未计入。",
    ),
    "not_recorded": (
        "The files say nothing of what was really paid.",
        "文件没有记录实际花费。",
    ),
    "all_models": ("together", "合计"),
    # --- columns --------------------------------------------------------------------------------
    "model": ("model", "模型"),
    "requests": ("requests", "请求"),
    "sent": ("sent", "发送"),
    "cached": ("cached", "缓存"),
    "received": ("received", "接收"),
    "cost": ("cost", "花费"),
    "policy": ("policy", "策略"),
    "of_uncut": ("of\nuncut", "相对\n不裁剪"),
    "kept": ("kept\n%", "保留\n%"),
    "literal": ("exact\n%", "逐字\n%"),
    "cuts": ("cuts", "裁剪"),
    "resets": ("re-\nsets", "重置"),
    "summaries": ("sum-\nmaries", "摘要"),
    "summary_cost": ("their\ncost", "摘要\n花费"),
    "readings": ("read\nagain", "重新\n读取"),
    "refused": ("re-\nfused", "被拒"),
    # --- under a table --------------------------------------------------------------------------
    "window": ("In a window of {n} tokens", "窗口 {n} token"),
    "each": (
        "Cuts and resets of the cache are a mean for each session; the rest are sums.",
        "裁剪和缓存重置为每个会话的均值，其余为合计。",
    ),
    "longest": (
        "Uncut is for a model with room: the longest request has {n} tokens.",
        "不裁剪以容得下的模型为准：最长的请求有 {n} token。",
    ),
    "likely": (
        "{policy}: written by a model, its summaries would keep about {share} in all.",
        "{policy}：若摘要由模型撰写，总计约保留 {share}。",
    ),
    # --- the verdict ----------------------------------------------------------------------------
    "less": (
        "{policy} costs {ours} instead of {uncut}: {share} less.",
        "{policy} 花费 {ours}，不裁剪为 {uncut}：省 {share}。",
    ),
    "more": (
        "{policy} costs {ours} instead of {uncut}: {share} more.",
        "{policy} 花费 {ours}，不裁剪为 {uncut}：多 {share}。",
    ),
    "same": ("{policy} costs {ours}, as much as uncut.", "{policy} 花费 {ours}，与不裁剪相同。"),
    "stays": (
        "Of {n} string needed again it keeps {kept}, {literal} word for word.|"
        "Of {n} strings needed again it keeps {kept}, {literal} word for word.",
        "再次用到的 {n} 个字符串保留了 {kept}，逐字 {literal}。",
    ),
    "unprobed": ("Nothing was needed again.", "没有再次用到的内容。"),
    "valid": ("Every request is valid and within the window.", "所有请求都有效且不超窗。"),
    "invalid": (
        "{n} request would be refused: {over} over the window, {invalid} invalid.|"
        "{n} requests would be refused: {over} over the window, {invalid} invalid.",
        "{n} 个请求会被拒绝：超窗 {over}，无效 {invalid}。",
    ),
    "broken": (
        "{n} request changed what had been sent although nothing was cut.|"
        "{n} requests changed what had been sent although nothing was cut.",
        "{n} 个请求在没有裁剪时改动了已发送的内容。",
    ),
    "dearer": ("{n} session costs more than uncut.|{n} sessions cost more than uncut.", "{n} 个会话比不裁剪更贵。"),
}


class ReplayWording(Wording):
    """The texts of a replay in one language."""

    def counted_by(self, key: str, number: int, **values: str) -> str:
        """The text in the form that the number asks for, with more values in place."""
        one, _, several = self._text(key).rpartition("|")
        return (one if one and number == 1 else several).format(n=amount(number), **values)

    def _text(self, key: str) -> str:
        english, chinese = REPLAY_TEXTS[key]
        return chinese if self.language == "zh" else english
