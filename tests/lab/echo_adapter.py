"""A peer made up for the tests: it prints, it fails, it falls over. Standard library only, as it runs on its own."""

from everlong.lab.peers.shapes import FAILURES, Fitting, Message

FAILS, FALLS_OVER = 13, 666


def _newest(messages: list[Message], budget: int) -> list[Message]:
    print("a line that is no answer")
    if budget == FAILS:
        raise ValueError("thirteen is no budget")
    if budget == FALLS_OVER:
        raise SystemExit("gone for good")
    return [{"role": "system", "content": f"{len(messages)} messages"}, *messages[-budget:]]


STRATEGIES = {"newest": Fitting(read=list, fit=_newest, write=lambda kept, _: kept, failures=FAILURES)}
