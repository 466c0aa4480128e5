"""Refusals: what a provider's error means, and what it says about sizes."""

from everlong.wire.refusals.classify import Kind, Refusal, as_error, classify
from everlong.wire.refusals.reasons import REASON_SIGNS, Reason, ReasonSign
from everlong.wire.usage import SilentOverflow, silent_overflow, truncated_window

__all__ = [
    "REASON_SIGNS",
    "Kind",
    "Reason",
    "ReasonSign",
    "Refusal",
    "SilentOverflow",
    "as_error",
    "classify",
    "silent_overflow",
    "truncated_window",
]
