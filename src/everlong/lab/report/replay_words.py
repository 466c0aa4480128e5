"""Every word of a replay's page in English and Chinese. Only words: when each is said is decided elsewhere."""

__all__ = ["REPLAY_TEXTS"]

#: key -> English ("one|several" where a number decides), Chinese
REPLAY_TEXTS: dict[str, tuple[str, str]] = {
    "replay_title": ("What it costs, and what stays", "花了多少，留下多少"),
    "replay_intro": (
        "Real conversations, sent again request by request and billed by a provider's prices and cache rules. "
        "No model was called: these are figures of a replay, except where a file's own record is named.",
        "把真实对话逐个请求重放，按服务商的价格和缓存规则计费。没有调用任何模型：除注明来自文件记录的以外，都是重放得出的数字。",
    ),
    "replay_window": ("In a window of {n} tokens", "窗口 {n} token"),
    "replay_prices": ("prices: {name}", "价格：{name}"),
    "replay_requests": ("{n} request|{n} requests", "{n} 个请求"),
    "replay_tokens": ("{tokens} tokens", "{tokens} token"),
    # the verdict
    "replay_less": (
        "With auto it costs {ours} instead of {uncut}: {share} less.",
        "使用 auto 花费 {ours}，不裁剪则为 {uncut}：省下 {share}。",
    ),
    "replay_more": (
        "With auto it costs {ours} instead of {uncut}: {share} more.",
        "使用 auto 花费 {ours}，不裁剪则为 {uncut}：多出 {share}。",
    ),
    "replay_same": ("With auto it costs {ours}, the same as uncut.", "使用 auto 花费 {ours}，与不裁剪相同。"),
    "replay_stays": (
        "The {n} string that was needed again later: {kept} still in the request, {literal} word for word.|"
        "Of {n} strings that were needed again later, {kept} were still in the request, {literal} word for word.",
        "之后再次用到的 {n} 个字符串中，{kept} 仍在请求里，{literal} 为逐字保留。",
    ),
    "replay_unprobed": (
        "Nothing was asked for again, so nothing is said of what was kept.",
        "没有再次用到的内容，因此无法说明保留了多少。",
    ),
    "replay_no_ours": ("auto was not among the policies.", "所比较的策略中没有 auto。"),
    "replay_tile_recorded": ("Really paid", "实际支付"),
    "replay_tile_recorded_under": (
        "by the files: {n} request, {tokens} tokens|by the files: {n} requests, {tokens} tokens",
        "文件记录：{n} 个请求，{tokens} token",
    ),
    "replay_tile_uncut": ("Nothing cut", "不裁剪"),
    "replay_tile_uncut_fits": ("replayed; fits the window", "重放；窗口容得下"),
    "replay_tile_uncut_under": ("replayed, every time in full", "重放，每次完整发送"),
    "replay_tile_uncut_over": ("replayed; needs a larger window", "重放；需要更大的窗口"),
    "replay_tile_ours": ("With auto", "使用 auto"),
    "replay_tile_ours_under": ("replayed; {share} of uncut", "重放；为不裁剪的 {share}"),
    "replay_tile_kept": ("Still there", "仍在"),
    "replay_tile_kept_under": ("{literal} word for word", "逐字 {literal}"),
    "replay_tile_summaries": ("Summaries", "摘要"),
    "replay_tile_share": ("{share} of the bill", "占账单 {share}"),
    "replay_tile_readings": ("Read again", "重新读取"),
    "replay_tile_cuts": ("Cuts", "裁剪"),
    "replay_tile_one_reset": ("one cache reset each", "每次只重置一次缓存"),
    "replay_tile_no_cuts": ("nothing had to go", "无需裁剪"),
    "replay_tile_resets": ("{n} reset of the cache|{n} resets of the cache", "缓存重置 {n} 次"),
    "replay_tile_refused": ("Over or refused", "超窗或被拒"),
    "replay_tile_none_refused": ("every request fits, all are valid", "所有请求都不超窗且有效"),
    "replay_tile_some_refused": ("{over} over, {invalid} invalid", "超窗 {over}，无效 {invalid}"),
    "replay_note_impossible": (
        "Sending everything is not possible in this window: the longest request has {longest} tokens, and {n} of {all} "
        "requests would be refused. The uncut figure is for a model with room for all of it.",
        "在此窗口中无法完整发送：最长的请求有 {longest} token，{all} 个请求中有 {n} 个会被拒绝。"
        "不裁剪的数字以容得下全部内容的模型为准。",
    ),
    "replay_note_fit": (
        "Everything fits this window: the longest request has {longest} tokens.",
        "此窗口容得下全部内容：最长的请求有 {longest} token。",
    ),
    "replay_note_refused": (
        "{n} request of auto would be refused.|{n} requests of auto would be refused.",
        "auto 有 {n} 个请求会被拒绝。",
    ),
    "replay_note_broken": (
        "{n} request of auto changed what had been sent although nothing was cut.|"
        "{n} requests of auto changed what had been sent although nothing was cut.",
        "auto 有 {n} 个请求在没有裁剪时改动了已发送的内容。",
    ),
    "replay_note_steady": (
        "Between two cuts every request begins with all of the one before it, so the cache holds.",
        "两次裁剪之间，每个请求都以前一个请求的全部内容开头，缓存始终有效。",
    ),
    "replay_note_dearer": (
        "{n} conversation costs more with auto than uncut.|{n} conversations cost more with auto than uncut.",
        "{n} 个对话使用 auto 比不裁剪更贵。",
    ),
    "replay_note_never_dearer": (
        "No conversation costs more with auto than uncut.",
        "没有任何对话使用 auto 比不裁剪更贵。",
    ),
    "replay_note_likely": (
        "Summaries here are stand-ins. Written by a model they would keep more: about {likely} in all, an estimate.",
        "这里的摘要只是占位。若由模型撰写会保留更多：总计约 {likely}（估计值）。",
    ),
    "replay_note_recorded": (
        "{n} of {all} conversations keeps a record of what was paid.|"
        "{n} of {all} conversations keep a record of what was paid.",
        "{all} 个对话中有 {n} 个记录了实际支付。",
    ),
    "replay_note_not_alike": (
        "The record is of other requests than these: with their own system text, tools, pauses and cuts. "
        "Compare the replayed figures with each other.",
        "文件记录的是另一批请求：各有其系统提示、工具、停顿和裁剪。请在重放的数字之间比较。",
    ),
    "replay_note_unpriced": (
        "No price is known for {n} recorded request; it is not in the sum.|"
        "No price is known for {n} recorded requests; they are not in the sum.",
        "有 {n} 个记录的请求没有已知价格，未计入总额。",
    ),
    "replay_by_model": ("What was really paid, by model", "实际支付，按模型"),
    # pictures
    "replay_turns": ("Cost over turns", "花费随轮次的变化"),
    "replay_turn": ("What request n costs", "第 n 个请求的花费"),
    "replay_turn_y": ("dollars a request, mean", "每个请求的花费（美元，均值）"),
    "replay_turn_one_y": ("dollars a request", "每个请求的花费（美元）"),
    "replay_turn_x": ("request n", "第 n 个请求"),
    "replay_turn_caption": (
        "Mean over the conversations that have so many requests, as long as one in ten goes on; neighbouring requests "
        "share a point. Summaries and readings are in it.",
        "对达到该请求数的对话取均值，画到只剩十分之一的对话为止；相邻请求合为一点。包含摘要和重新读取的花费。",
    ),
    "replay_turn_one_caption": (
        "Neighbouring requests share a point. Summaries and readings are in it.",
        "相邻请求合为一点。包含摘要和重新读取的花费。",
    ),
    "replay_growth": (
        "A request around number {end} costs {uncut} as much as one around {start} if nothing is cut, and {ours} as "
        "much with auto.",
        "与第 {start} 个请求前后相比，第 {end} 个请求前后的单次花费：不裁剪为 {uncut}，使用 auto 为 {ours}。",
    ),
    "replay_times": ("{times} times", "{times} 倍"),
    "replay_total": ("All requests so far, one conversation", "单个对话的累计花费"),
    "replay_total_y": ("dollars so far", "累计花费（美元）"),
    "replay_total_dearest": ("The dearest conversation: {name}.", "最贵的对话：{name}。"),
    "replay_marks": (
        "At the bottom, auto: a stroke is a cut, a dot a summary.",
        "底部为 auto：短线是裁剪，圆点是摘要。",
    ),
    "replay_mark_cut": ("cut at request {at}", "第 {at} 个请求处裁剪"),
    "replay_mark_summary": ("summary at request {at}", "第 {at} 个请求处生成摘要"),
    "replay_front": ("Cost against what stays", "花费与保留"),
    "replay_front_x": ("cost, of uncut → dearer", "花费，相对不裁剪 → 更贵"),
    "replay_front_y": ("↑ word for word, % of what was needed again", "↑ 逐字保留，占再次用到内容的 %"),
    "replay_front_caption": (
        "Up and left is better. Hollow: a provider would refuse some of its requests. The stepped line is the front of "
        "all others: none is cheaper and keeps more.",
        "越靠左上越好。空心：服务商会拒绝其中一些请求。阶梯线是其余策略的前沿：没有哪个更便宜又留得更多。",
    ),
    "replay_uncut_line": ("as much as uncut", "与不裁剪相同"),
    "replay_thresholds": ("A cheaper or a safer threshold", "更省或更稳的阈值"),
    "replay_thresholds_rule": (
        "The threshold is how full the window may get before auto cuts. As a rule lower is cheaper, higher is safer; "
        "far down, cutting so often costs more again.",
        "阈值是 auto 裁剪前窗口可以占满的程度。通常越低越省，越高越稳；过低时频繁裁剪反而更贵。",
    ),
    "replay_threshold_x": ("threshold, of the window", "阈值，占窗口"),
    "replay_threshold_y": ("%", "%"),
    "replay_threshold_cost": ("cost, of uncut", "花费，相对不裁剪"),
    "replay_threshold_literal": ("word for word", "逐字保留"),
    "replay_threshold_kept": ("still there", "仍在"),
    "replay_used": ("in use", "使用中"),
    # tables
    "replay_sessions": ("Every conversation", "每个对话"),
    "replay_rest": ("and {n} more|and {n} more", "另有 {n} 个"),
    "replay_sessions_caption": (
        "The dearest {shown} of {all}; the last line is the rest together.",
        "{all} 个中最贵的 {shown} 个；最后一行为其余合计。",
    ),
    "replay_column_policy": ("policy", "策略"),
    "replay_column_model": ("model", "模型"),
    "replay_column_threshold": ("threshold", "阈值"),
    "replay_column_dollars": ("cost", "花费"),
    "replay_column_ratio": ("of uncut", "相对不裁剪"),
    "replay_column_kept": ("still there, %", "仍在，%"),
    "replay_column_literal": ("word for word, %", "逐字，%"),
    "replay_column_resets": ("resets", "重置"),
    "replay_column_cuts": ("cuts", "裁剪"),
    "replay_column_summaries": ("summaries", "摘要"),
    "replay_column_readings": ("read again", "重新读取"),
    "replay_column_over": ("over", "超窗"),
    "replay_column_invalid": ("invalid", "无效"),
    "replay_column_session": ("conversation", "对话"),
    "replay_column_source": ("from", "来源"),
    "replay_column_messages": ("messages", "消息"),
    "replay_column_tokens": ("tokens", "token"),
    "replay_column_requests": ("requests", "请求"),
    "replay_column_recorded": ("really paid", "实际支付"),
    "replay_column_uncut": ("uncut", "不裁剪"),
    "replay_column_ours": ("auto", "auto"),
    "replay_column_saved": ("saved", "节省"),
    "replay_column_prompt": ("sent", "发送"),
    "replay_column_read": ("read from cache", "读缓存"),
    "replay_column_written": ("written to cache", "写缓存"),
    "replay_column_output": ("received", "接收"),
    # policies
    "replay_policy_whole": ("uncut", "不裁剪"),
    "replay_about_whole": ("everything, every time; for a model with room", "每次发送全部；以容得下的模型为准"),
    "replay_about_auto": ("everlong, as it comes", "everlong 默认"),
    "replay_about_auto-trim": ("everlong without summaries", "everlong，不用摘要"),
    "replay_about_slide": ("the newest steps that fit, each time anew", "每次重新取放得下的最新步骤"),
    "replay_about_clear": (
        "all results but the newest three cleared, each time anew",
        "每次重新清空除最新三个以外的工具结果",
    ),
    "replay_about_newest": ("the newest rounds that fit, each time anew", "每次重新取放得下的最新轮次"),
    "replay_about_drop": ("old rounds dropped in batches", "成批丢弃旧轮次"),
    "replay_about_cold": ("old rounds dropped, sooner when the cache is cold", "丢弃旧轮次，缓存失效时提前进行"),
    "replay_about_trim": ("old results shortened in batches", "成批缩短旧的工具结果"),
    "replay_about_trim-each": ("old results shortened every time", "每次缩短旧的工具结果"),
    "replay_about_summary": ("old rounds become a summary", "旧轮次换成摘要"),
    "replay_about_summary-capped": ("a summary, and long results cut on arrival", "摘要，过长的结果到达时即截短"),
    "replay_about_cleared": ("old results cleared every time", "每次清空旧的工具结果"),
    # what this is
    "replay_about": ("How to read this", "如何理解这些数字"),
    "replay_rule_request": (
        "One request for each answer of the conversation: what stands before it, as the policy would send it. Calls "
        "for summaries and readings are on the bill.",
        "对话中的每个回答对应一个请求：发送它之前的内容，按该策略的方式。摘要和重新读取的调用都计入账单。",
    ),
    "replay_rule_cache": (
        "What an earlier request began with is read from the provider's cache at a lower price; all behind the first "
        "change is paid anew. That is a reset, and why a cut costs money before it saves any.",
        "与先前请求开头相同的部分以较低价格从服务商缓存读取；第一处改动之后的全部内容重新付费。"
        "这就是重置，也是裁剪先花钱后省钱的原因。",
    ),
    "replay_rule_prices": (
        "Prices of {name}, for a million tokens: {prices}.",
        "{name} 的价格（每百万 token）：{prices}。",
    ),
    "replay_price_input": ("{dollars} sent", "发送 {dollars}"),
    "replay_price_cache_read": ("{dollars} read from the cache", "读缓存 {dollars}"),
    "replay_price_cache_write": ("{dollars} written to it", "写缓存 {dollars}"),
    "replay_price_output": ("{dollars} received", "接收 {dollars}"),
    "replay_rule_automatic": (
        "Its cache finds the longest beginning it has seen, from {least} tokens on, and forgets it after {time} "
        "without use.",
        "其缓存会找到见过的最长开头（至少 {least} token），{time}未使用即失效。",
    ),
    "replay_rule_marked": (
        "Its cache keeps what ends at a mark that a request sets, from {least} tokens on, and forgets it after {time} "
        "without use.",
        "其缓存保留到请求所设断点为止的内容（至少 {least} token），{time}未使用即失效。",
    ),
    "replay_rule_none": ("Nothing is cached: every token is paid in full.", "没有缓存：每个 token 都按全价计费。"),
    "replay_minutes": ("{n} minute|{n} minutes", "{n} 分钟"),
    "replay_hours": ("{n} hour|{n} hours", "{n} 小时"),
    "replay_seconds": ("{n} second|{n} seconds", "{n} 秒"),
    "replay_pauses_recorded": (
        "Pauses between requests are those of the conversation, where it keeps times; else none is longer than the "
        "cache lives.",
        "请求之间的停顿取自对话记录的时间；没有时间的，视为从不超过缓存寿命。",
    ),
    "replay_pauses_none": (
        "No pause is longer than the cache lives: the cache is always warm.",
        "停顿从不超过缓存寿命：缓存始终有效。",
    ),
    "replay_pauses_turns": (
        "The cache has forgotten everything whenever the user speaks.",
        "用户每次发言时，缓存都已失效。",
    ),
    "replay_rule_probe": (
        "Still there: a string (a name, a path, a line) that the agent used in a later call, and that came up only "
        "long before, is looked for in the request that led to that call. Word for word: it stands elsewhere than in a "
        "list of names or a summary.",
        "仍在：智能体在之后的调用中用到、且只在很早之前出现过的字符串（名称、路径、代码行），"
        "在引出该调用的请求中查找。逐字：出现在名称清单和摘要以外的地方。",
    ),
    "replay_rule_reading": (
        "Read again: where such a string is gone, the agent is taken to read it again. That is one request more, and "
        "what it read stays in the conversation. What a summary is likely to tell is not read again.",
        "重新读取：若该字符串已不在，则视为智能体重新读取一次。这会多一个请求，读到的内容留在对话中。"
        "摘要很可能提到的，不再读取。",
    ),
    "replay_rule_uncut": (
        "Uncut: the same conversation sent whole every time, to a model with room for it, at the same prices.",
        "不裁剪：同一对话每次完整发送给容得下的模型，价格相同。",
    ),
    "replay_rule_refused": (
        "Over: more tokens than the window. Invalid: what a provider refuses for its form, such as a result without "
        "its call.",
        "超窗：token 数超过窗口。无效：服务商会因格式拒绝，例如没有对应调用的结果。",
    ),
}
