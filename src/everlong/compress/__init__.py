"""Compression: pure steps that bring a history under a size, each reporting what it changed, and presets made of them.

A step is one function in `steps`, a preset one value in `presets`; `compact` runs a preset on a draft. Nothing here does I/O,
asks a model, or knows providers, threads or stores.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.compress.draft import (
        OURS as OURS,
        Draft as Draft,
        Task as Task,
        draft_of as draft_of,
        firm_tokens as firm_tokens,
    )
    from everlong.compress.excerpts import WORDS as WORDS, Selection as Selection, background as background
    from everlong.compress.options import Option as Option, Scalar as Scalar
    from everlong.compress.pipeline import arrive as arrive, compact as compact
    from everlong.compress.preset import (
        HistoryWindow as HistoryWindow,
        Preset as Preset,
        SummaryPolicy as SummaryPolicy,
        SummaryStyle as SummaryStyle,
    )
    from everlong.compress.presets import (
        PRESET_NAMES as PRESET_NAMES,
        PRESET_OPTIONS as PRESET_OPTIONS,
        PRESETS as PRESETS,
        policy_of_style as policy_of_style,
        preset_named as preset_named,
        unused_options as unused_options,
    )
    from everlong.compress.steps.by_need import by_need as by_need
    from everlong.compress.steps.call_arguments import call_arguments as call_arguments
    from everlong.compress.steps.custom import Assembler as Assembler, Compressor as Compressor, step_from as step_from
    from everlong.compress.steps.duplicates import duplicates as duplicates
    from everlong.compress.steps.emergency import emergency as emergency, floor as floor
    from everlong.compress.steps.hard_trim import hard_trim as hard_trim
    from everlong.compress.steps.images import images as images
    from everlong.compress.steps.json_tables import json_tables as json_tables
    from everlong.compress.steps.long_messages import long_messages as long_messages
    from everlong.compress.steps.long_task import long_task as long_task
    from everlong.compress.steps.newest import newest as newest
    from everlong.compress.steps.priority import priority as priority
    from everlong.compress.steps.reasoning import reasoning as reasoning
    from everlong.compress.steps.repeated_lines import repeated_lines as repeated_lines
    from everlong.compress.steps.soft_trim import soft_trim as soft_trim
    from everlong.compress.steps.superseded import superseded as superseded
    from everlong.compress.steps.terminal import as_shown as as_shown, terminal as terminal
    from everlong.compress.steps.tool_rounds import tool_rounds as tool_rounds
    from everlong.compress.text.boundaries import Cut as Cut, cut_characters as cut_characters
    from everlong.compress.text.file_access import Use as Use, accesses as accesses, looks_failed as looks_failed
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "draft": "Draft OURS Task draft_of firm_tokens",
            "excerpts": "Selection WORDS background",
            "options": "Option Scalar",
            "pipeline": "arrive compact",
            "preset": "HistoryWindow Preset SummaryPolicy SummaryStyle",
            "presets": "PRESETS PRESET_NAMES PRESET_OPTIONS policy_of_style preset_named unused_options",
            "steps.by_need": "by_need",
            "steps.call_arguments": "call_arguments",
            "steps.custom": "Assembler Compressor step_from",
            "steps.duplicates": "duplicates",
            "steps.emergency": "emergency floor",
            "steps.hard_trim": "hard_trim",
            "steps.images": "images",
            "steps.json_tables": "json_tables",
            "steps.long_messages": "long_messages",
            "steps.long_task": "long_task",
            "steps.newest": "newest",
            "steps.priority": "priority",
            "steps.reasoning": "reasoning",
            "steps.repeated_lines": "repeated_lines",
            "steps.soft_trim": "soft_trim",
            "steps.superseded": "superseded",
            "steps.terminal": "as_shown terminal",
            "steps.tool_rounds": "tool_rounds",
            "text.boundaries": "Cut cut_characters",
            "text.file_access": "Use accesses looks_failed",
        },
    )
