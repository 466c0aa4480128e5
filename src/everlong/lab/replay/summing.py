"""The sums over conversations that were played: what a table shows of a policy."""

from collections.abc import Callable, Sequence

from everlong.lab.replay.results import Paid, Played, ReplayResult

__all__ = ["DEARER", "summed"]

DEARER = 1.01  # times uncut; below, it is the few tokens that a repair adds and no loss of the cache


def summed(played: Sequence[Played], uncut: Sequence[Played]) -> ReplayResult:
    """One policy, window and tariff over all conversations. `uncut` are the same conversations, nothing cut.

    A conversation counts as dearer if it cost over one percent more than uncut: where nothing had to be cut, repairs of
    a request still add a few tokens.
    """
    first = played[0]
    paid = [one for conversation in played for one in conversation.paid]
    probes = [probe for conversation in played for probe in conversation.probes]
    whole = {one.session.id: one.dollars for one in uncut}

    def many(of: Callable[[Paid], int]) -> int:
        return sum(map(of, paid))

    def dollars(kind: str) -> float:
        return sum(one.dollars for one in paid if one.kind == kind)

    return ReplayResult(
        policy=first.policy,
        window=first.window,
        tariff=first.tariff,
        played=tuple(played),
        requests=len(paid),
        prompt=many(lambda one: one.prompt),
        read=many(lambda one: one.read),
        written=many(lambda one: one.written),
        output=many(lambda one: one.output),
        dollars=sum(one.dollars for one in paid),
        uncut=sum(whole.values()),
        summaries=many(lambda one: one.kind == "summary"),
        summary_dollars=dollars("summary"),
        readings=many(lambda one: one.kind == "reading"),
        reading_dollars=dollars("reading"),
        cuts=many(lambda one: one.cut),
        resets=many(lambda one: one.reset),
        broken=many(lambda one: one.reset and not one.cut),
        over=many(lambda one: one.over),
        invalid=many(lambda one: bool(one.problems) and not one.over),
        dearer=sum(one.dollars > whole[one.session.id] * DEARER for one in played),
        probes=len(probes),
        kept=sum(probe.kept for probe in probes),
        literal=sum(probe.literal for probe in probes),
        likely=sum(probe.likely for probe in probes),
    )
