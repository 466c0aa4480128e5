"""Token counts of texts, messages and images: exact if a tokenizer exists, otherwise estimated.

It only counts; other packages decide what fits. It never uses the network.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.tokens.counter import (
        CALL_FRAME as CALL_FRAME,
        KEPT as KEPT,
        LARGEST_RATIO as LARGEST_RATIO,
        MESSAGE_FRAME as MESSAGE_FRAME,
        Calibration as Calibration,
        Counter as Counter,
        Tally as Tally,
    )
    from everlong.tokens.estimates import (
        CLASSES as CLASSES,
        ESTIMATED as ESTIMATED,
        REPEATABLE as REPEATABLE,
        STEPS as STEPS,
        class_codes as class_codes,
        estimate as estimate,
        run_tokens as run_tokens,
        shorten_runs as shorten_runs,
    )
    from everlong.tokens.exact import count_exact as count_exact
    from everlong.tokens.images import dimensions as dimensions
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "counter": "CALL_FRAME Calibration Counter KEPT LARGEST_RATIO MESSAGE_FRAME Tally",
            "estimates": "CLASSES ESTIMATED REPEATABLE STEPS class_codes estimate run_tokens shorten_runs",
            "exact": "count_exact",
            "images": "dimensions",
        },
    )
