"""The preset `auto`, our own: nothing happens below the threshold, and then the cheapest loss comes first.

Steps that lose nothing run only if they could be enough, and do not touch the newest steps. What still does not fit
leaves the window: the newest steps stay as messages, and what the question and the work refer to stays word for word. A
long task is shortened in place first.
"""

from functools import partial

from everlong.compress.newest_steps import before_newest
from everlong.compress.pipeline import when_close
from everlong.compress.preset import Preset, SummaryPolicy
from everlong.compress.steps.choice.by_need import by_need
from everlong.compress.steps.lossless.duplicates import duplicates
from everlong.compress.steps.lossless.json_tables import json_tables
from everlong.compress.steps.lossless.repeated_lines import repeated_lines
from everlong.compress.steps.lossless.superseded import superseded
from everlong.compress.steps.lossless.terminal import terminal
from everlong.compress.steps.trims.images import images
from everlong.compress.steps.trims.long_task import long_task
from everlong.compress.steps.trims.reasoning import reasoning

__all__ = ["AUTO"]

AUTO = Preset(
    name="auto",
    compaction=(
        *(
            when_close(before_newest(step))
            for step in (duplicates, partial(superseded, after_edits=False), terminal, json_tables, repeated_lines)
        ),
        images,
        before_newest(reasoning),
        long_task,
        by_need,
    ),
    keeps_task=True,
    summary=SummaryPolicy(in_work=False),
    measured=True,
)
