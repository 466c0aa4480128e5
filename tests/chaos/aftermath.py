"""What must hold when everything is over, read from the database and asked of any replica.

- No job is left: none waits, none runs, none failed. A store that was away is no failure of a job.
- No summary was applied twice, and no two of the same messages.
- Any replica explains any request by its id, but for those whose process was killed before it could write.
"""

import asyncio
import json
import re
from collections import Counter
from random import Random

import psycopg

from tests.chaos.cluster import Cluster
from tests.chaos.verdict import Verdict
from tests.gateway.talking import RawClient

__all__ = ["judge_aftermath"]

PATIENCE = 180.0  # seconds; a job of a process that died is taken over within thirty
GLANCE = 0.25  # seconds between two looks
SUMMARY = re.compile(r"\[summary (\d+)\]")
WRITTEN = 15.0  # seconds after an answer in which its explanation may still be lost with its process
JOBS = "SELECT status::text, count(*) FROM everlong.procrastinate_jobs WHERE queue_name = ANY(%s) GROUP BY status"
QUEUES = "SELECT DISTINCT queue_name FROM everlong.procrastinate_jobs WHERE queueing_lock IS NULL"
MARKS = (
    "SELECT convert_from(kind, 'utf8'), convert_from(value, 'utf8') FROM everlong.facts"
    " WHERE convert_from(kind, 'utf8') LIKE 'gateway/marks/%'"
)


async def judge_aftermath(verdict: Verdict, cluster: Cluster, database: str) -> None:
    """Wait until no job is left, then look at what was written."""
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE
    while (left := await asyncio.to_thread(_jobs, database)) and (left["todo"] or left["doing"]):
        if loop.time() > until:
            verdict.fault("jobs", f"{left['todo']} jobs wait and {left['doing']} run after {PATIENCE:g} s of peace")
            break
        await asyncio.sleep(GLANCE)
    if left["failed"]:
        verdict.fault("jobs", f"{left['failed']} jobs failed")
    for line in await asyncio.to_thread(_applied_twice, database):
        verdict.fault("summary", line)
    await _ask_for_explanations(verdict, cluster)


def _jobs(database: str) -> Counter[str]:
    """How many jobs there are in each state, periodic ones aside."""
    with psycopg.connect(database) as connection:
        if connection.execute("SELECT to_regclass('everlong.procrastinate_jobs')").fetchone() == (None,):
            return Counter()
        queues = [name for (name,) in connection.execute(QUEUES).fetchall()]
        return Counter(dict(connection.execute(JOBS, (queues,)).fetchall()))


def _applied_twice(database: str) -> list[str]:
    """Lines about conversations in which a summary, or one of the same messages, was applied twice."""
    applied: dict[str, list[tuple[int, int]]] = {}
    with psycopg.connect(database) as connection:
        for kind, value in connection.execute(MARKS).fetchall():
            mark = json.loads(value)
            entry = json.loads(mark["entry"]) if isinstance(mark["entry"], str) else mark["entry"]
            newest = max(map(int, SUMMARY.findall(entry.get("account", ""))), default=0)
            if entry.get("reason") == "summary" and newest:  # rules write one where no model may be asked
                applied.setdefault(kind, []).append((newest, mark["upto"]))
    lines = []
    for kind, pairs in applied.items():
        for what, counts in (
            ("summary", Counter(pair[0] for pair in pairs)),
            ("end", Counter(pair[1] for pair in pairs)),
        ):
            lines += [
                f"{kind}: {what} {value} was applied {times} times" for value, times in counts.items() if times > 1
            ]
    return lines


async def _ask_for_explanations(verdict: Verdict, cluster: Cluster) -> None:
    chance = Random(verdict.seed)
    for one in verdict.asked_about:
        if one.run.ending == "killed" and one.run.ended - one.time < WRITTEN:
            continue
        run = await cluster.pick(chance)
        async with RawClient(run.port) as client:
            client.ask(f"/everlong/requests/{one.request}", headers={"x-api-key": one.key}, method="GET")
            status, _, body = await client.answer()
        verdict.counts["explanations"] += 1
        if status != 200:
            ended = f"{one.run.ending} {one.run.ended - one.time:.1f} s later" if one.run.ending else "alive"
            verdict.fault("explanation", f"{one.request} of {one.run.name} ({ended}): {run.name} says {status}")
        elif one.change and not json.loads(body)["compactions"]:
            verdict.fault("prefix", f"{one.change}; so says its explanation")
