"""`auto`, our own preset: below the threshold nothing happens; then the cheapest loss comes first.

Steps that lose nothing run only if they could be enough. What still does not fit leaves the window: the newest steps
stay whole, and of the rest what the question and the work refer to stays word for word. A long task is shortened in its
place first.
"""

from functools import partial

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
        when_close(duplicates),
        when_close(partial(superseded, after_edits=False)),
        when_close(terminal),
        when_close(json_tables),
        when_close(repeated_lines),
        images,
        reasoning,
        long_task,
        by_need,
    ),
    keeps_task=True,
    measured=True,
)
