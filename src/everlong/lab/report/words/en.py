"""The words of the lab's pages in English. For a text with two forms, "one|several", the number `n` decides."""

__all__ = ["TEXTS"]

TEXTS = {
    "html_language": "en",
    "between_sentences": " ",
    "between_items": ", ",
    # what survives, and what it costs
    "title": "What survives",
    "speed_title": "What it costs",
    "intro": (
        "Real conversations, no judge: a figure says how much of what was needed later is still in what would be sent."
    ),
    "capacity_title": "What a rate of requests needs",
    "capacity_intro": "On paper from the costs of one request, and checked by playing the load.",
    "speed_intro": "CPU time first, and ratios: they hold on a busy machine, wall times do not.",
    "probes": "Strings that agents used later",
    "edits": "Text that agents replaced later",
    "dialogs": "Questions about long dialogues",
    "rule": "Rule.",
    "rule_probes": (
        "An agent really used the string later in a call; before that it stood in at most three messages, the last of "
        "them thousands of tokens back. A hit: it is a part of any text that would be sent."
    ),
    "rule_edits": (
        "An agent later replaced this text in a file. A hit: the whole of it stands in what would be sent, as "
        "consecutive lines; line numbers of file reads aside."
    ),
    "rule_dialogs": "A hit: every turn that holds a part of the answer is in what would be sent, word for word.",
    "strict": "Full bars are strict: what stands only in our ledger of names is not counted.",
    "mostly_over": "Dotted: more than half of what was sent passed the budget, so a provider would have refused it.",
    "ceiling": "in the whole history",
    "ceiling_hint": "{share} stand in the whole history (dashed line): more cannot be found.",
    "half_all": "all conversations",
    "half_tuning": "tuning half",
    "half_confirming": "confirming half",
    "conversations": "{n} conversation|{n} conversations",
    "cases_probes": "{n} string|{n} strings",
    "cases_edits": "{n} edit|{n} edits",
    "cases_dialogs": "{n} question|{n} questions",
    "cases": "{n} case|{n} cases",
    "budget": "budget, tokens",
    "at_budget": "At {n} tokens",
    "still_there": "still there, %",
    "all_figures": "All figures",
    "by": "By {what}, at {n} tokens",
    "by_kind": "kind",
    "by_source": "source",
    "by_category": "category",
    "column_strategy": "strategy",
    "column_budget": "budget",
    "column_hits": "hits",
    "column_strict": "strict",
    "column_total": "of",
    "column_recall": "recall, %",
    "column_ms": "ms, median",
    "column_tokens": "tokens sent",
    "column_over": "over budget",
    "column_failed": "failed",
    "over": "over the budget {n} of {all}",
    "failed": "failed {n}",
    "nothing": "There are no results.",
    "footer": "One file, nothing loaded from elsewhere, nothing sent anywhere.",
    # replay
    "continuity_title": "What stands after a compaction",
    "continuity_intro": (
        "Real sessions of agents, played through the engine with a history that grows. After each compaction: are the "
        "task, the last three steps and the user's last words still there as messages?"
    ),
    "continuity_rule": (
        "The task is the first user message and the one that began the running work. A step is an assistant message "
        "with its calls and their results; a result of fewer than 300 tokens stands whole, a larger one with a quarter "
        "or more. New is what was said between two compactions, of what compaction can move, least and median; less "
        "than 40 % is too soon."
    ),
    "continuity_window": "window",
    "continuity_overhead": "overhead",
    "continuity_task": "task %",
    "continuity_steps": "steps %",
    "continuity_words": "words %",
    "continuity_compactions": "compactions",
    "continuity_between": "requests between",
    "continuity_new": "new",
    "continuity_storms": "too soon",
    "continuity_refused": "refused",
    "resume_title": "What the next calls find after a compaction",
    "resume_intro": (
        "Real sessions of agents, played through the engine with a history that grows. After each compaction: is what "
        "the next recorded calls used still in what is sent? Strategies are asked at the same compactions, with the "
        "whole history and as many tokens as the preset sent."
    ),
    "resume_rule": (
        "A need is a path, an id, a compound name or a replaced line in the arguments of one of the next calls that "
        "stood in the history before the compaction and not in what was said since. Strict: there word for word, "
        "outside lists of names and summaries. A repeated call is forced again if its result is the same as before the "
        "compaction and that is no longer there whole. The recorded agent had more in view: a missing need means that "
        "it would have to look again, not that it would fail."
    ),
    "resume_preset": "Compactions of {name}, {n} tokens of overhead",
    "resume_plotted": "calls with everything they need, strictly, %",
    "resume_window": "window, tokens",
    "resume_in": "In a window of {n} tokens",
    "resume_nothing": "No session had to be compacted.",
    "resume_counts": (
        "{n} compaction, {calls} calls with {needs} needs, {edits} texts to replace.|"
        "{n} compactions, {calls} calls with {needs} needs, {edits} texts to replace."
    ),
    "resume_repeats": (
        "{n} of {after} recorded calls repeats one from before, {changed} with another result.|"
        "{n} of {after} recorded calls repeat one from before, {changed} with another result."
    ),
    "resume_strategy": "strategy",
    "resume_calls": "calls %",
    "resume_calls_strict": "calls, strict %",
    "resume_needs": "needs %",
    "resume_needs_strict": "needs, strict %",
    "resume_edits": "edits %",
    "resume_resumed": "all next calls %",
    "resume_gone": "forced again",
    "resume_tokens": "tokens",
    "resume_over": "over the budget",
    "resume_by_kind": "Needs by kind, strict %",
    "resume_by_source": "Calls by project, strict %",
    "resume_source": "project",
    "resume_compactions": "compactions",
    "resume_played": "{name}, played",
    "resume_kind_line": "replaced lines",
    "resume_kind_path": "paths",
    "resume_kind_id": "ids",
    "resume_kind_name": "names",
    "replay_title": "What it costs, and what stays",
    "replay_intro": (
        "Real conversations, sent again request by request and billed by a provider's prices and cache rules. "
        "No model was called: these are figures of a replay, except where a file's own record is named."
    ),
    "replay_window": "In a window of {n} tokens",
    "replay_prices": "prices: {name}",
    "replay_overhead": "{n} tokens of system text and tools",
    "replay_requests": "{n} request|{n} requests",
    "replay_tokens": "{tokens} tokens",
    # the verdict
    "replay_less": "With auto it costs {ours} instead of {uncut}: {share} less.",
    "replay_more": "With auto it costs {ours} instead of {uncut}: {share} more.",
    "replay_same": "With auto it costs {ours}, the same as uncut.",
    "replay_stays": (
        "The {n} string that was needed again later: {kept} still in the request, {literal} word for word.|"
        "Of {n} strings that were needed again later, {kept} were still in the request, {literal} word for word."
    ),
    "replay_unprobed": "Nothing was asked for again, so nothing is said of what was kept.",
    "replay_no_ours": "auto was not among the policies.",
    "replay_tile_recorded": "Really paid",
    "replay_tile_recorded_under": (
        "by the files: {n} request, {tokens} tokens|by the files: {n} requests, {tokens} tokens"
    ),
    "replay_tile_uncut": "Nothing cut",
    "replay_tile_uncut_fits": "replayed; fits the window",
    "replay_tile_uncut_under": "replayed, every time in full",
    "replay_tile_uncut_over": "replayed; needs a larger window",
    "replay_tile_ours": "With auto",
    "replay_tile_ours_under": "replayed; {share} of uncut",
    "replay_tile_kept": "Still there",
    "replay_tile_kept_under": "{literal} word for word",
    "replay_tile_summaries": "Summaries",
    "replay_tile_share": "{share} of the bill",
    "replay_tile_readings": "Read again",
    "replay_tile_cuts": "Cuts",
    "replay_tile_one_reset": "one cache reset each",
    "replay_tile_no_cuts": "nothing had to go",
    "replay_tile_resets": "{n} reset of the cache|{n} resets of the cache",
    "replay_tile_refused": "Over or refused",
    "replay_tile_none_refused": "every request fits, all are valid",
    "replay_tile_some_refused": "{over} over, {invalid} invalid",
    "replay_note_impossible": (
        "Sending everything is not possible in this window: the longest request has {longest} tokens, and {n} of {all} "
        "requests would be refused. The uncut figure is for a model with room for all of it."
    ),
    "replay_note_fit": "Everything fits this window: the longest request has {longest} tokens.",
    "replay_note_refused": "{n} request of auto would be refused.|{n} requests of auto would be refused.",
    "replay_note_broken": (
        "{n} request of auto changed what had been sent although nothing was cut.|"
        "{n} requests of auto changed what had been sent although nothing was cut."
    ),
    "replay_note_steady": "Between two cuts every request begins with all of the one before it, so the cache holds.",
    "replay_note_storms": (
        "{n} cut came too soon after another: less than 40 % of what can move was new.|"
        "{n} cuts came too soon after another: less than 40 % of what can move was new."
    ),
    "replay_note_dearer": (
        "{n} conversation costs more with auto than uncut.|{n} conversations cost more with auto than uncut."
    ),
    "replay_note_never_dearer": "No conversation costs more with auto than uncut.",
    "replay_note_likely": (
        "Summaries here are stand-ins. Written by a model they would keep more: about {likely} in all, an estimate."
    ),
    "replay_note_recorded": (
        "{n} of {all} conversations keeps a record of what was paid.|"
        "{n} of {all} conversations keep a record of what was paid."
    ),
    "replay_note_not_alike": (
        "The record is of other requests than these: with their own system text, tools, pauses and cuts. "
        "Compare the replayed figures with each other."
    ),
    "replay_note_unpriced": (
        "No price is known for {n} recorded request; it is not in the sum.|"
        "No price is known for {n} recorded requests; they are not in the sum."
    ),
    "replay_by_model": "What was really paid, by model",
    # pictures
    "replay_turns": "Cost over turns",
    "replay_turn": "What request n costs",
    "replay_turn_y": "dollars a request, mean",
    "replay_turn_one_y": "dollars a request",
    "replay_turn_x": "request n",
    "replay_turn_caption": (
        "Mean over the conversations that have so many requests, as long as one in ten goes on; neighbouring requests "
        "share a point. Summaries and readings are in it."
    ),
    "replay_turn_one_caption": "Neighbouring requests share a point. Summaries and readings are in it.",
    "replay_growth": (
        "A request around number {end} costs {uncut} as much as one around {start} if nothing is cut, and {ours} as "
        "much with auto."
    ),
    "replay_times": "{times} times",
    "replay_total": "All requests so far, one conversation",
    "replay_total_y": "dollars so far",
    "replay_total_dearest": "The dearest conversation: {name}.",
    "replay_marks": "At the bottom, auto: a stroke is a cut, a dot a summary.",
    "replay_mark_cut": "cut at request {at}",
    "replay_mark_summary": "summary at request {at}",
    "replay_front": "Cost against what stays",
    "replay_front_x": "cost, of uncut → dearer",
    "replay_front_y": "↑ word for word, % of what was needed again",
    "replay_front_caption": (
        "Up and left is better. Hollow: a provider would refuse some of its requests. The stepped line is the front of "
        "all others: none is cheaper and keeps more."
    ),
    "replay_uncut_line": "as much as uncut",
    "replay_thresholds": "A cheaper or a safer threshold",
    "replay_thresholds_rule": (
        "The threshold is how full the window may get before auto cuts. As a rule lower is cheaper, higher is safer; "
        "far down, cutting so often costs more again."
    ),
    "replay_threshold_x": "threshold, of the window",
    "replay_threshold_y": "%",
    "replay_threshold_cost": "cost, of uncut",
    "replay_threshold_literal": "word for word",
    "replay_threshold_kept": "still there",
    "replay_used": "in use",
    # tables
    "replay_sessions": "Every conversation",
    "replay_rest": "and {n} more|and {n} more",
    "replay_sessions_caption": "The dearest {shown} of {all}; the last line is the rest together.",
    "replay_column_policy": "policy",
    "replay_column_model": "model",
    "replay_column_threshold": "threshold",
    "replay_column_dollars": "cost",
    "replay_column_ratio": "of uncut",
    "replay_column_kept": "still there, %",
    "replay_column_literal": "word for word, %",
    "replay_column_resets": "resets",
    "replay_column_cuts": "cuts",
    "replay_column_storms": "too soon",
    "replay_column_summaries": "summaries",
    "replay_column_readings": "read again",
    "replay_column_over": "over",
    "replay_column_invalid": "invalid",
    "replay_column_session": "conversation",
    "replay_column_source": "from",
    "replay_column_messages": "messages",
    "replay_column_tokens": "tokens",
    "replay_column_requests": "requests",
    "replay_column_recorded": "really paid",
    "replay_column_uncut": "uncut",
    "replay_column_ours": "auto",
    "replay_column_saved": "saved",
    "replay_column_prompt": "sent",
    "replay_column_read": "read from cache",
    "replay_column_written": "written to cache",
    "replay_column_output": "received",
    # policies
    "replay_policy_whole": "uncut",
    "replay_about_whole": "everything, every time; for a model with room",
    "replay_about_auto": "everlong, as it comes",
    "replay_about_auto-trim": "everlong without summaries",
    "replay_about_slide": "the newest steps that fit, each time anew",
    "replay_about_clear": "all results but the newest three cleared, each time anew",
    "replay_about_newest": "the newest rounds that fit, each time anew",
    "replay_about_drop": "old rounds dropped in batches",
    "replay_about_cold": "old rounds dropped, sooner when the cache is cold",
    "replay_about_trim": "old results shortened in batches",
    "replay_about_trim-each": "old results shortened every time",
    "replay_about_summary": "old rounds become a summary",
    "replay_about_summary-capped": "a summary, and long results cut on arrival",
    "replay_about_cleared": "old results cleared every time",
    # what this is
    "replay_about": "How to read this",
    "replay_rule_request": (
        "One request for each answer of the conversation: what stands before it, as the policy would send it. Calls "
        "for summaries and readings are on the bill."
    ),
    "replay_rule_cache": (
        "What an earlier request began with is read from the provider's cache at a lower price; all behind the first "
        "change is paid anew. That is a reset, and why a cut costs money before it saves any."
    ),
    "replay_rule_prices": "Prices of {name}, for a million tokens: {prices}.",
    "replay_price_input": "{dollars} sent",
    "replay_price_cache_read": "{dollars} read from the cache",
    "replay_price_cache_write": "{dollars} written to it",
    "replay_price_output": "{dollars} received",
    "replay_rule_automatic": (
        "Its cache finds the longest beginning it has seen, from {least} tokens on, and forgets it after {time} "
        "without use."
    ),
    "replay_rule_marked": (
        "Its cache keeps what ends at a mark that a request sets, from {least} tokens on, and forgets it after {time} "
        "without use."
    ),
    "replay_rule_none": "Nothing is cached: every token is paid in full.",
    "replay_minutes": "{n} minute|{n} minutes",
    "replay_hours": "{n} hour|{n} hours",
    "replay_seconds": "{n} second|{n} seconds",
    "replay_pauses_recorded": (
        "Pauses between requests are those of the conversation, where it keeps times; else none is longer than the "
        "cache lives."
    ),
    "replay_pauses_none": "No pause is longer than the cache lives: the cache is always warm.",
    "replay_pauses_turns": "The cache has forgotten everything whenever the user speaks.",
    "replay_rule_probe": (
        "Still there: a string (a name, a path, a line) that the agent used in a later call, and that came up only "
        "long before, is looked for in the request that led to that call. Word for word: it stands elsewhere than in a "
        "list of names or a summary."
    ),
    "replay_rule_reading": (
        "Read again: where such a string is gone, the agent is taken to read it again. That is one request more, and "
        "what it read stays in the conversation. What a summary is likely to tell is not read again."
    ),
    "replay_rule_uncut": (
        "Uncut: the same conversation sent whole every time, to a model with room for it, at the same prices."
    ),
    "replay_rule_refused": (
        "Over: more tokens than the window. Invalid: what a provider refuses for its form, such as a result without "
        "its call."
    ),
}
