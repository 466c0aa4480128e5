"""What `everlong sessions` says to people, in English and Chinese side by side."""

from everlong.cli.maps.wording import Wording

__all__ = ["SESSION_TEXTS", "SessionWording"]

SESSION_TEXTS: dict[str, tuple[str, str]] = {
    "messages": ("{n} message|{n} messages", "{n} 条消息"),
    "more": ("… and {n} more", "……另有 {n} 个"),
    "points": ("{n} compaction|{n} compactions", "{n} 次压缩"),
    # --- list -------------------------------------------------------------------------------------
    "title": ("title", "标题"),
    "head_messages": ("messages", "消息"),
    "head_points": ("compactions", "压缩"),
    "head_changed": ("changed", "更新"),
    "head_owner": ("owner", "所有者"),
    "head_id": ("id", "编号"),
    "untitled": ("(untitled)", "（无标题）"),
    "none": ("No sessions here yet.", "这里还没有会话。"),
    "none_hint": (
        "Bring some in: everlong sessions import FILE… (of Claude Code, Codex, pi, nanobot, Chatbox, or chat JSON)",
        "导入会话：everlong sessions import FILE…（Claude Code、Codex、pi、nanobot、Chatbox 的会话，或聊天 JSON）",
    ),
    "list_more": ("{n} more; --limit 0 shows all", "另有 {n} 个；--limit 0 显示全部"),
    "archived": ("archived", "已归档"),
    "now": ("just now", "刚刚"),
    "minutes_ago": ("{n} min ago", "{n} 分钟前"),
    "hours_ago": ("{n} h ago", "{n} 小时前"),
    "days_ago": ("{n} day ago|{n} days ago", "{n} 天前"),
    # --- show -------------------------------------------------------------------------------------
    "branch_of": ("branched off {id} after message {at}", "分支自 {id}，在消息 {at} 之后"),
    "earlier": (
        "{n} earlier message; --last 0 shows all|{n} earlier messages; --last 0 shows all",
        "更早还有 {n} 条消息；--last 0 显示全部",
    ),
    "cut": (
        "… {n} more character; --full shows all|… {n} more characters; --full shows all",
        "……另有 {n} 个字符；--full 显示全部",
    ),
    "boundary": ("compacted, point {at}", "压缩点 {at}"),
    "boundary_stands": ("sent instead", "代替以上内容"),
    "boundary_older": ("superseded", "已被取代"),
    "boundary_withdrawn": ("withdrawn", "已撤销"),
    "no_summary": ("(no summary: what is above is left out)", "（无摘要：以上内容不再发送）"),
    "tokens": ("{before} → {after} tokens", "{before} → {after} token"),
    "tokens_covered": ("{n} tokens above", "以上共 {n} token"),
    "pinned": ("pinned", "已置顶"),
    "pinned_text": ("pinned text", "置顶文本"),
    "recalled": ("recalled for message {at}", "为消息 {at} 找回的内容"),
    "before": ("as it was before point {at}", "压缩点 {at} 之前的样子"),
    "picture": ("[picture]", "[图片]"),
    "thought": ("thinking", "思考"),
    "failed": ("failed", "失败"),
    "role_system": ("system", "系统"),
    "role_user": ("user", "用户"),
    "role_assistant": ("assistant", "助手"),
    "role_tool": ("tool", "工具"),
    # --- search -----------------------------------------------------------------------------------
    "found": ("{n} message found|{n} messages found", "找到 {n} 条消息"),
    "not_found": ("Nothing found.", "没有找到。"),
    # --- events, cost -----------------------------------------------------------------------------
    "no_events": ("Nothing was recorded.", "没有任何记录。"),
    "unfinished": ("not finished", "未结束"),
    "events_earlier": (
        "… {n} earlier event; --last 0 shows all|… {n} earlier events; --last 0 shows all",
        "……更早还有 {n} 个事件；--last 0 显示全部",
    ),
    "messages_changed": ("{before} → {after} messages", "{before} → {after} 条消息"),
    "tokens_used": ("{prompt} in, {output} out", "输入 {prompt}，输出 {output}"),
    "head_model": ("model", "模型"),
    "head_calls": ("calls", "调用"),
    "head_prompt": ("prompt", "输入"),
    "head_cached": ("cached", "缓存"),
    "head_output": ("output", "输出"),
    "head_cost": ("dollars", "美元"),
    "unnamed": ("(no name)", "（无名称）"),
    "total": ("total", "合计"),
    "no_cost": ("No model was called.", "没有调用过模型。"),
    "unpriced": (
        "{n} call is of a model without a known price|{n} calls are of models without a known price",
        "{n} 次调用的模型价格未知",
    ),
    # --- import, export ---------------------------------------------------------------------------
    "importing": ("importing", "正在导入"),
    "is_new": ("new", "新会话"),
    "is_grown": ("grown", "有新内容"),
    "is_branch": ("branch", "分支"),
    "is_known": ("nothing new", "没有新内容"),
    "comma": (", ", "，"),
    "imported": ("{n} session|{n} sessions", "{n} 个会话"),
    "imported_total": (
        "{sessions}: {new} new, {grown} grown, {known} unchanged; {messages} added",
        "{sessions}：新增 {new}，有新内容 {grown}，无变化 {known}；共添加 {messages}",
    ),
    "passed_over": ("{n} file holds no conversation|{n} files hold no conversation", "{n} 个文件不含对话"),
    "exported": ("{title} written to {path}", "{title} 已写入 {path}"),
    # --- changes ----------------------------------------------------------------------------------
    "now_archived": ("Archived: {title}", "已归档：{title}"),
    "now_unarchived": ("Back in the list: {title}", "已恢复到列表：{title}"),
    "renamed": ("Renamed: {title}", "已重命名：{title}"),
    "branched": ("New session {id}: the first {n} rows of {title}", "新会话 {id}：取自 {title} 的前 {n} 行"),
    "undone": (
        "Withdrawn: point {at}. What it covered ({messages}) is sent whole again.",
        "已撤销压缩点 {at}。其涵盖的 {messages}将重新完整发送。",
    ),
    "now_pinned": ("Pinned: {text}", "已置顶：{text}"),
    "now_unpinned": ("No longer pinned: {text}", "已取消置顶：{text}"),
    # --- remove -----------------------------------------------------------------------------------
    "remove_ask": (
        "Remove {n} session with everything said in it? It cannot be brought back"
        "|Remove {n} sessions with everything said in them? They cannot be brought back",
        "删除 {n} 个会话及其全部内容？删除后无法恢复",
    ),
    "removed": ("Removed: {title}", "已删除：{title}"),
    "none_removed": ("Nothing to remove.", "没有可删除的会话。"),
}


class SessionWording(Wording):
    """The texts of these commands in one language."""

    def _text(self, key: str) -> str:
        english, chinese = SESSION_TEXTS[key]
        return chinese if self.language == "zh" else english
