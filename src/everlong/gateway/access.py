"""The access log: one JSON line a request, figures and names only. What was said, and keys, are never in it."""

import json
import logging
import sys

from everlong.gateway.reports import Report

__all__ = ["log_request", "set_up_logging"]

access = logging.getLogger("everlong.access")


def log_request(report: Report) -> None:
    """Write the line of a request."""
    if not access.isEnabledFor(logging.INFO):
        return
    usage = report.usage
    said = {
        "time": report.time.isoformat(timespec="milliseconds"),
        "request": report.id,
        "client": report.client,
        "path": report.path,
        "model": report.model,
        "upstream": report.upstream,
        "mode": report.mode,
        "status": report.status,
        "stream": report.streamed,
        "tokens_before": report.before,
        "tokens_after": report.after,
        "edits": len(report.edits),
        "recovered": report.recovered,
        "prompt": usage.prompt if usage else None,
        "cached": usage.cached if usage else None,
        "output": usage.output if usage else None,
        "added_ms": round(report.added_ms, 1),
        "seconds": round(report.seconds, 3),
        "bytes_in": report.bytes_in,
        "bytes_out": report.bytes_out,
        "kind": report.kind,
    }
    access.info(json.dumps({name: value for name, value in said.items() if value not in (None, "")}))


def set_up_logging(*, lines: bool) -> None:
    """Access lines on standard output if wanted, warnings on standard error."""
    out = logging.StreamHandler(sys.stdout)
    out.setFormatter(logging.Formatter("%(message)s"))
    access.handlers, access.propagate = [out], False
    access.setLevel(logging.INFO if lines else logging.WARNING)
    told = logging.StreamHandler(sys.stderr)
    told.setFormatter(logging.Formatter("everlong: %(message)s"))
    root = logging.getLogger("everlong")
    root.handlers, root.propagate = [told], False
    root.setLevel(logging.WARNING)
