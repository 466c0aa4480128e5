"""What `everlong demo` says to people, in English and Chinese side by side."""

from everlong.cli.maps.wording import Wording

__all__ = ["DEMO_TEXTS", "DemoWording"]

DEMO_TEXTS: dict[str, tuple[str, str]] = {
    "title": ("A conversation that outgrows its window", "一场超出窗口的对话"),
    "explained": (
        "Two people run four bookshops with an assistant and its tools. A scripted model plays the assistant "
        "in a window of {window} tokens; Everlong decides what is sent.",
        "两个人和会用工具的助手打理四家书店。助手由脚本模型扮演，窗口 {window} token；每次发送什么，由 Everlong 决定。",
    ),
    "head_said": ("so far", "累计"),
    "head_sent": ("sent to the model", "发给模型"),
    "full": (
        "the window is full: without Everlong, this is the end",
        "窗口已满：没有 Everlong，对话到此为止",
    ),
    "cut": ("cut: {before} → {after} tokens", "压缩：{before} → {after} token"),
    "asked": (
        "The last question needs five things said earlier. Are they in what was sent?",
        "最后一问要用到先前说过的五件事。发出的内容里还有吗？",
    ),
    "turn": ("turn {n}", "第 {n} 轮"),
    "fact_rounding": ("rounding rule", "取整规则"),
    "fact_consignment": ("consignment", "寄售书"),
    "fact_ticket": ("open ticket", "未关工单"),
    "fact_money": ("money left", "剩余预算"),
    "fact_saturday": ("Saturdays", "周六"),
    "left_out": ("left out; engine.recall brings it back", "未发送；可用 engine.recall 找回"),
    "requests": (
        "{requests} requests, {refused} refused; the largest {largest} tokens of {window}",
        "{requests} 次请求，{refused} 次被拒；最大的一次 {largest} token，窗口 {window}",
    ),
    "cached": (
        "{share} of the tokens sent were an unchanged beginning, which providers cache",
        "所发 token 中 {share} 属于未变的开头，服务商可用缓存",
    ),
    "kept": (
        "{said} tokens in {messages} messages were said; all are kept, each can be brought back",
        "共说了 {said} token、{messages} 条消息；全部保留，每一条都能找回",
    ),
    "look": (
        "Look at it: everlong sessions show {thread} --store {store}",
        "查看：everlong sessions show {thread} --store {store}",
    ),
}


class DemoWording(Wording):
    """The texts of the demonstration in one language."""

    def _text(self, key: str) -> str:
        english, chinese = DEMO_TEXTS[key]
        return chinese if self.language == "zh" else english
