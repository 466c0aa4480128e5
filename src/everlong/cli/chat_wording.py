"""What `everlong chat` says to people, in English and Chinese side by side."""

from everlong.cli.maps.wording import Wording

__all__ = ["CHAT_TEXTS", "REASONS", "ChatWording"]

CHAT_TEXTS: dict[str, tuple[str, str]] = {
    # --- where the model comes from ---------------------------------------------------------------
    "no_model": (
        "no model: use --local, --upstream URL, or set a key such as OPENAI_API_KEY",
        "没有可用的模型：请用 --local、--upstream URL，或设置 OPENAI_API_KEY 之类的密钥",
    ),
    "which_model": ("Whom do you want to talk to?", "想和哪个模型对话？"),
    "which_local": (
        "a small model on this machine (90 MB, fetched once; it talks, but knows little)",
        "本机的小模型（90 MB，只下载一次；会说话，但懂得不多）",
    ),
    "which_key": (
        "paste an API key, a provider's name, or the address of a gateway",
        "粘贴 API 密钥、服务商名称，或网关地址",
    ),
    "which": ("1 or 2 [1]:", "1 或 2 [1]："),
    "paste_key": ("Key, provider or address (not shown): ", "密钥、服务商或地址（不显示）："),
    "paste_server_key": ("Its key, if it wants one (not shown): ", "它的密钥，如果需要（不显示）："),
    "whose_key": ("Whose key is it? ({list}): ", "这是谁的密钥？（{list}）："),
    "no_provider": ("no such provider; there are {list}", "没有这个服务商；可选：{list}"),
    "starting_local": ("Starting the local model …", "正在启动本机模型……"),
    # --- the frame --------------------------------------------------------------------------------
    "hello": ("Everlong · {model} · window {window}", "Everlong · {model} · 窗口 {window}"),
    "window_known": ("{n} tokens", "{n} token"),
    "window_unknown": ("unknown, {n} assumed", "未知，按 {n} 计"),
    "hello_help": (
        "/help lists the commands · Ctrl-C stops an answer · Ctrl-D leaves",
        "/help 列出命令 · Ctrl-C 停止回答 · Ctrl-D 退出",
    ),
    "goes_on": ("Going on with “{title}”, {messages}.", "继续“{title}”，{messages}。"),
    "messages": ("{n} message|{n} messages", "{n} 条消息"),
    "last_said": ("you, last: {text}", "你上次说：{text}"),
    "sample_begun": (
        "A sample thread: {messages}, in a window of {window} tokens. Ask anything; a cut comes within a few turns.",
        "示例会话：{messages}，窗口 {window} token。随便问；几轮之内就会看到压缩。",
    ),
    "ignored_fields": (
        "everlong.toml of this folder: {fields} not heeded. EVERLONG_CONFIG=everlong.toml trusts it.",
        "本文件夹的 everlong.toml：{fields} 未采用。设置 EVERLONG_CONFIG=everlong.toml 表示信任它。",
    ),
    "no_tools_local": ("No tools: the local model makes no calls.", "不带工具：本机模型不会调用。"),
    "again_to_leave": ("Ctrl-C again to leave, or go on typing", "再按一次 Ctrl-C 退出，或继续输入"),
    "bye": ("Kept. everlong chat --thread {thread} goes on.", "已保存。everlong chat --thread {thread} 可继续。"),
    "waiting": ("waiting · {seconds} s · Ctrl-C stops", "等待中 · {seconds} 秒 · Ctrl-C 停止"),
    "lines": ("{n} line|{n} lines", "{n} 行"),
    "interrupted": ("stopped", "已停止"),
    "failed": ("the turn failed", "本轮失败"),
    "most_steps": ("All {steps} steps of this turn were used.", "本轮的 {steps} 个步骤已用完。"),
    "most_tokens": ("The turn used its tokens, in {steps} steps.", "本轮用完了 token 预算，共 {steps} 步。"),
    "stopped_at_length": ("(the answer was cut off at its length limit)", "（回答达到长度上限，被截断）"),
    "restarted": ("↻ it answers again: {reason}", "↻ 重新回答：{reason}"),
    "more_not_shown": ("(the answer goes on; all of it is kept in the thread)", "（回答还有下文；全文保存在会话中）"),
    "more_characters": ("… and {n} more character|… and {n} more characters", "……另有 {n} 个字符"),
    "overflow_help": (
        "It does not fit the window. /compact makes room, /new begins afresh, /context shows what fills it.",
        "放不进窗口。/compact 腾出空间，/new 重新开始，/context 查看占用。",
    ),
    "no_stdin_text": ("standard input is no text", "标准输入不是文本"),
    "nothing_said": (
        "nothing to say: give -m TEXT, or text on standard input",
        "没有要说的话：请用 -m TEXT，或从标准输入给出文本",
    ),
    # --- the meter --------------------------------------------------------------------------------
    "meter": ("{used} / {limit} tokens · {percent} %", "{used} / {limit} token · {percent} %"),
    "meter_unknown": ("{used} / ? tokens ({assumed} assumed)", "{used} / ? token（按 {assumed} 计）"),
    # --- what happens beside ----------------------------------------------------------------------
    "notice_cut": ("cut: {before} → {after} tokens ({reason})", "压缩：{before} → {after} token（{reason}）"),
    "notice_restored": ("undone: {before} → {after} tokens", "已撤销：{before} → {after} token"),
    "notice_warned": ("{reason}", "{reason}"),
    "notice_summary_started": ("a summary is being written ({reason})", "正在写摘要（{reason}）"),
    "notice_summary": ("summary: {before} → {after} tokens", "摘要：{before} → {after} token"),
    "notice_summary_by_rules": (
        "summary by rules: {before} → {after} tokens; no model wrote one ({reason})",
        "按规则摘要：{before} → {after} token；没有模型写摘要（{reason}）",
    ),
    "notice_summary_skipped": ("no summary: {reason}", "没有写摘要：{reason}"),
    "notice_summary_failed": (
        "the summary failed, nothing changed: {reason}",
        "摘要失败，一切照旧：{reason}",
    ),
    "notice_overflow": ("refused as too long; trying a shorter form", "因过长被拒；正以更短的形式重试"),
    "notice_recovered": ("it fits now: {after} tokens", "现在放得下：{after} token"),
    "notice_learned": ("the window is {after} tokens, as the server says", "服务端表明窗口为 {after} token"),
    "notice_recalled": ("brought back from earlier: {after} tokens", "取回较早的内容：{after} token"),
    # --- asking -----------------------------------------------------------------------------------
    "may": ("{name} wants to act:", "{name} 想执行："),
    "may_answer": (
        "Allow it? y(es) / n(o) / a(lways in this chat) [n]: ",
        "允许吗？y 是 / n 否 / a 本次对话一律允许 [n]：",
    ),
    "not_allowed": (
        "{name} was not allowed: nobody can be asked here; --yes allows it",
        "{name} 未获允许：这里没有人可以询问；--yes 表示允许",
    ),
    "refused": ("not allowed", "未允许"),
    # --- commands ---------------------------------------------------------------------------------
    "help_line": (
        "A line that ends with \\ goes on; pasted lines stay together.",
        "行尾的 \\ 表示续行；粘贴的多行保持为一条。",
    ),
    "help_context": ("what would be sent now, and how much of it is what", "现在会发送什么，各占多少"),
    "help_compact": ("make room now; FOCUS is what must stay in view", "现在就压缩；FOCUS 是要保留的重点"),
    "help_undo": ("take the newest compaction back", "撤销最近一次压缩"),
    "help_pin": (
        "keep a message (by number) or a text in every request; alone: list",
        "固定一条消息（编号）或一段文字；不带参数则列出",
    ),
    "help_unpin": ("let a pin go, by its number in the list", "取消固定，按列表中的编号"),
    "help_recall": (
        "bring back what was said in this thread, by words or reference",
        "按词语或引用取回本会话说过的内容",
    ),
    "help_search": ("find where something was said, in all threads", "在所有会话中查找"),
    "help_threads": ("list the threads and choose one", "列出会话并选择"),
    "help_new": ("begin a new thread", "开始新会话"),
    "help_clear": ("begin a new thread on an empty screen", "清屏并开始新会话"),
    "help_model": ("go on with another model; alone: which one it is", "换一个模型继续；不带参数则显示当前模型"),
    "help_threshold": ("from how full on a cut is made, 40 to 95 %", "窗口占用多少时压缩，40 到 95 %"),
    "help_why": ("what was left out of the last request, and why", "上次请求省略了什么，为什么"),
    "help_show": ("open a folded call; alone: the last one", "展开一次调用；不带参数则为最近一次"),
    "help_image": ("send a picture with the next message", "下一条消息附带图片"),
    "help_title": ("name this thread; alone: its name", "给会话命名；不带参数则显示名称"),
    "help_help": ("this list", "本列表"),
    "help_exit": ("leave; the thread is kept", "退出；会话会保存"),
    "unknown_command": ("no command {name}; /help lists them", "没有命令 {name}；/help 列出全部"),
    "did_you_mean": ("no command {name}; did you mean {nearest}?", "没有命令 {name}；是不是 {nearest}？"),
    "nothing_yet": ("Nothing was said in this thread yet.", "本会话还没有内容。"),
    "compacting": ("Making room …", "正在压缩……"),
    "compacted": ("Compacted: {before} → {after} tokens.", "已压缩：{before} → {after} token。"),
    "compacted_by_rules": (
        "Compacted by rules: {before} → {after} tokens. No model wrote a summary ({reason}).",
        "已按规则压缩：{before} → {after} token。没有模型写摘要（{reason}）。",
    ),
    "not_compacted": ("Not compacted: {reason}", "没有压缩：{reason}"),
    "compact_stopped": ("Stopped; nothing changed.", "已停止；一切照旧。"),
    "undone": ("Undone: the next request is as if it had not been compacted.", "已撤销：下次请求如同没有压缩过。"),
    "nothing_to_undo": ("No compaction stands.", "没有可撤销的压缩。"),
    "pinned": ("Pinned: {text}", "已固定：{text}"),
    "unpinned": ("Let go: {text}", "已取消固定：{text}"),
    "no_pins": (
        "Nothing is pinned. /pin TEXT keeps a text, /pin NUMBER a message.",
        "没有固定的内容。/pin 文字，或 /pin 消息编号。",
    ),
    "no_such_pin": ("No pin {n}; /pin lists them.", "没有固定项 {n}；/pin 列出全部。"),
    "no_such_message": ("No message {n} in this thread.", "本会话没有消息 {n}。"),
    "which_words": ("Give some words to look for.", "请给出要查找的词语。"),
    "nothing_found": ("Nothing found.", "没有找到。"),
    "threads_none": ("No threads are kept here yet.", "这里还没有会话。"),
    "threads_choose": ("Number (Enter: stay here): ", "编号（回车：不切换）："),
    "threads_here": ("here", "当前"),
    "no_such_thread": ("No thread {n} in the list.", "列表中没有会话 {n}。"),
    "untitled": ("(untitled)", "（无标题）"),
    "column_title": ("title", "标题"),
    "column_number": ("", ""),
    "column_messages": ("messages", "消息"),
    "column_changed": ("changed", "更新"),
    "column_id": ("id", "编号"),
    "new_thread": ("A new thread. The old one is kept: /threads", "新会话。原会话已保存：/threads"),
    "model_is": ("{model}, window {window} ({source})", "{model}，窗口 {window}（{source}）"),
    "model_now": ("From now on: {model}, window {window} ({source})", "从现在起：{model}，窗口 {window}（{source}）"),
    "threshold_is": ("A cut is made at {percent} % of the room.", "占用达到 {percent} % 时压缩。"),
    "threshold_wrong": ("The threshold is a whole number from 40 to 95.", "阈值是 40 到 95 的整数。"),
    "why_nothing": ("Nothing was left out of the last request.", "上次请求没有省略任何内容。"),
    "why_saved": ("{edits}: {before} → {after} tokens", "{edits}：{before} → {after} token"),
    "edits": ("{n} change|{n} changes", "{n} 处改动"),
    "why_back": ("/recall REFERENCE brings an original back.", "/recall 引用 可取回原文。"),
    "why_more": ("… and {n} more", "……另有 {n} 处"),
    "column_message": ("message", "消息"),
    "column_what": ("what", "操作"),
    "column_why": ("why", "原因"),
    "column_before": ("before", "之前"),
    "column_after": ("after", "之后"),
    "column_ref": ("reference", "引用"),
    "show_none": ("No call was made yet.", "还没有调用。"),
    "show_wrong": ("There is no call {n}; the last is {last}.", "没有调用 {n}；最近一次是 {last}。"),
    "image_which": ("Which file? /image FILE", "哪个文件？/image 文件"),
    "image_added": (
        "{name} ({kind}, {n} KB) goes with the next message.",
        "{name}（{kind}，{n} KB）将随下一条消息发送。",
    ),
    "image_wrong": (
        "{name}: no picture that models take (PNG, JPEG, GIF, WebP)",
        "{name}：不是模型接受的图片（PNG、JPEG、GIF、WebP）",
    ),
    "image_large": ("{name}: {n} MB is too large; at most {most} MB", "{name}：{n} MB 过大；最多 {most} MB"),
    "title_is": ("Title: {title}", "标题：{title}"),
    # --- the map ----------------------------------------------------------------------------------
    "group_system": ("system", "系统"),
    "group_summary": ("summary, excerpts", "摘要与摘录"),
    "group_recalled": ("recalled", "取回"),
    "group_user": ("user", "用户"),
    "group_assistant": ("assistant", "助手"),
    "group_thinking": ("thinking", "思考"),
    "group_tools": ("tools", "工具"),
    "group_schemas": ("tool schemas", "工具定义"),
    "group_free": ("free", "剩余"),
    "group_reply": ("kept for the answer", "为回答预留"),
    "column_group": ("what", "内容"),
    "column_tokens": ("tokens", "token"),
    "column_share": ("of the window", "占窗口"),
    "map_covered": (
        "{n} earlier message is compacted|{n} earlier messages are compacted",
        "较早的 {n} 条消息已压缩",
    ),
    "map_pins": ("{n} pin|{n} pins", "{n} 处固定"),
    "counted": ("counted {how}; the meter says {meter}", "计数：{how}；占用 {meter}"),
    "how_exact": ("with the model's own vocabulary", "用模型自己的词表"),
    "how_estimated": ("by estimate", "估算"),
}


#: Reasons of cuts and summaries, as the engine gives them.
REASONS: dict[str, str] = {
    "high mark": "达到压缩阈值",
    "cold cache": "缓存已失效",
    "more than the window takes": "超出窗口",
    "asked for": "应要求",
    "it is due": "到了该写的时候",
    "idle": "空闲中",
    "interrupted": "被中断",
    "interrupted before": "上次被中断",
    "a cut is near": "快要压缩了",
    "nothing worth a summary since the last one": "上次之后没有值得摘要的内容",
    "it would not have saved anything": "不会省下什么",
    "the thread was changed meanwhile": "期间会话有变动",
    "there is no author": "没有可写摘要的模型",
    "cancelled": "已取消",
}


class ChatWording(Wording):
    """The texts of the chat in one language."""

    def general(self, key: str, **values: str) -> str:
        """A word that every screen of ours uses: a role, an action, where a figure is from."""
        return Wording(self.language)(key, **values)

    def reason(self, text: str) -> str:
        """Why something was done, in the person's language where that is known."""
        given, colon, rest = text.partition("by rules: ")
        if colon and not given:
            return self.reason(rest)
        if self.language == "zh" and text in REASONS:
            return REASONS[text]
        return Wording(self.language).reason(text)

    def _text(self, key: str) -> str:
        english, chinese = CHAT_TEXTS[key]
        return chinese if self.language == "zh" else english
