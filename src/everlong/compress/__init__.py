"""Compression: pure steps that bring a history under a size and report every change, and presets made of them.

A step is one function in `steps`, and a preset is one value in `presets`; `compact` runs a preset on a draft. Nothing
here does I/O, calls a model, or knows about providers, threads or stores.
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
    from everlong.compress.steps.choice.by_need import by_need as by_need
    from everlong.compress.steps.choice.newest import newest as newest
    from everlong.compress.steps.choice.priority import priority as priority
    from everlong.compress.steps.choice.tool_rounds import tool_rounds as tool_rounds
    from everlong.compress.steps.custom import Assembler as Assembler, Compressor as Compressor, step_from as step_from
    from everlong.compress.steps.emergency import emergency as emergency
    from everlong.compress.steps.lossless.duplicates import duplicates as duplicates
    from everlong.compress.steps.lossless.json_tables import json_tables as json_tables
    from everlong.compress.steps.lossless.repeated_lines import repeated_lines as repeated_lines
    from everlong.compress.steps.lossless.superseded import superseded as superseded
    from everlong.compress.steps.lossless.terminal import as_shown as as_shown, terminal as terminal
    from everlong.compress.steps.trims.call_arguments import call_arguments as call_arguments
    from everlong.compress.steps.trims.hard_trim import hard_trim as hard_trim
    from everlong.compress.steps.trims.images import images as images
    from everlong.compress.steps.trims.long_messages import long_messages as long_messages
    from everlong.compress.steps.trims.long_task import long_task as long_task
    from everlong.compress.steps.trims.reasoning import reasoning as reasoning
    from everlong.compress.steps.trims.soft_trim import soft_trim as soft_trim
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
            "steps.choice.by_need": "by_need",
            "steps.trims.call_arguments": "call_arguments",
            "steps.custom": "Assembler Compressor step_from",
            "steps.lossless.duplicates": "duplicates",
            "steps.emergency": "emergency",
            "steps.trims.hard_trim": "hard_trim",
            "steps.trims.images": "images",
            "steps.lossless.json_tables": "json_tables",
            "steps.trims.long_messages": "long_messages",
            "steps.trims.long_task": "long_task",
            "steps.choice.newest": "newest",
            "steps.choice.priority": "priority",
            "steps.trims.reasoning": "reasoning",
            "steps.lossless.repeated_lines": "repeated_lines",
            "steps.trims.soft_trim": "soft_trim",
            "steps.lossless.superseded": "superseded",
            "steps.lossless.terminal": "as_shown terminal",
            "steps.choice.tool_rounds": "tool_rounds",
            "text.boundaries": "Cut cut_characters",
            "text.file_access": "Use accesses looks_failed",
        },
    )
