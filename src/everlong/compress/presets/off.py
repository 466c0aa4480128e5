"""`off`: everything is sent as it is. A request that is too long is the provider's error to report.

A compaction by hand is still possible; it takes the steps of `auto`.
"""

from everlong.compress.preset import Preset, SummaryPolicy
from everlong.compress.presets.auto import AUTO

__all__ = ["OFF"]

OFF = Preset(
    name="off", compaction=AUTO.compaction, keeps_task=True, untouched=True, summary=SummaryPolicy(automatic=False)
)
