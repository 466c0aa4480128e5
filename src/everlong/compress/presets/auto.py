"""`auto`, our own preset: below the threshold nothing happens; then the cheapest loss comes first.

Steps that lose nothing run only if they could be enough, and leave the newest steps alone. What still does not fit
leaves the window: the newest steps stay messages, and of the rest what the question and the work refer to stays word
for word. A long task is shortened in its place first.
"""

from functools import partial

from everlong.compress.newest_steps import before_newest
from everlong.compress.pipeline import when_close
from everlong.compress.preset import Preset
from everlong.compress.steps.by_need import by_need
from everlong.compress.steps.duplicates import duplicates
from everlong.compress.steps.images import images
from everlong.compress.steps.json_tables import json_tables
from everlong.compress.steps.long_task import long_task
from everlong.compress.steps.reasoning import reasoning
from everlong.compress.steps.repeated_lines import repeated_lines
from everlong.compress.steps.superseded import superseded
from everlong.compress.steps.terminal import terminal

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
    measured=True,
)
