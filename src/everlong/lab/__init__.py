"""What survives: strategies measured on real conversations, without a judge."""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.lab.cases import (
        Cases as Cases,
        edit_cases as edit_cases,
        every as every,
        probe_cases as probe_cases,
        question_cases as question_cases,
    )
    from everlong.lab.clients.judging import Judged as Judged
    from everlong.lab.clients.running import Runner as Runner
    from everlong.lab.clients.table import CLIENTS as CLIENTS
    from everlong.lab.data import (
        HALVES as HALVES,
        Conversation as Conversation,
        agents as agents,
        data_folder as data_folder,
        dialogue_names as dialogue_names,
        in_half as in_half,
    )
    from everlong.lab.environments import Environments as Environments, folder_from as folder_from
    from everlong.lab.making import conversations_in as conversations_in, probes_in as probes_in, save as save
    from everlong.lab.measuring import Job as Job, Plan as Plan, measured as measured, summed as summed
    from everlong.lab.replay.caches import Cache as Cache, Outgoing as Outgoing, Rules as Rules, shared as shared
    from everlong.lab.replay.courses import (
        Beside as Beside,
        Course as Course,
        Policy as Policy,
        Sending as Sending,
        Terms as Terms,
    )
    from everlong.lab.replay.playing import played as played
    from everlong.lab.replay.policies import COMPARED as COMPARED, UNCUT as UNCUT, policy_named as policy_named
    from everlong.lab.replay.published import published as published
    from everlong.lab.replay.replaying import ReplayPlan as ReplayPlan, replayed as replayed
    from everlong.lab.replay.results import (
        Paid as Paid,
        Played as Played,
        Recorded as Recorded,
        ReplayResult as ReplayResult,
        Told as Told,
    )
    from everlong.lab.replay.sessions import PAUSES as PAUSES, Pauses as Pauses, Session as Session
    from everlong.lab.replay.sources import sessions_at as sessions_at, sessions_in as sessions_in
    from everlong.lab.replay.tariffs import (
        TARIFFS as TARIFFS,
        Tariff as Tariff,
        tariff_from as tariff_from,
        tariff_of as tariff_of,
    )
    from everlong.lab.report.replay_figures import Billed as Billed, Scene as Scene, billed as billed, scenes as scenes
    from everlong.lab.report.replay_page import replay_page as replay_page
    from everlong.lab.report.speed_page import speed_page as speed_page
    from everlong.lab.report.wording import money as money
    from everlong.lab.results import Result as Result, Row as Row
    from everlong.lab.running import run as run
    from everlong.lab.speed import NAMES as NAMES
    from everlong.lab.speed.jobs import Bench as Bench
    from everlong.lab.speed.program import machine as machine, measure as measure, versions as versions
    from everlong.lab.speed.tables import Table as Table
    from everlong.lab.strategies import (
        DIALOGUE_STRATEGIES as DIALOGUE_STRATEGIES,
        WORK_STRATEGIES as WORK_STRATEGIES,
        strategy_named as strategy_named,
    )
    from everlong.lab.strategy import counter as counter
    from everlong.lab.svg import tokens_short as tokens_short
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "cases": "Cases edit_cases every probe_cases question_cases",
            "clients.judging": "Judged",
            "clients.running": "Runner",
            "clients.table": "CLIENTS",
            "data": "Conversation HALVES agents data_folder dialogue_names in_half",
            "environments": "Environments folder_from",
            "making": "conversations_in probes_in save",
            "measuring": "Job Plan measured summed",
            "replay.caches": "Cache Outgoing Rules shared",
            "replay.courses": "Beside Course Policy Sending Terms",
            "replay.playing": "played",
            "replay.policies": "COMPARED UNCUT policy_named",
            "replay.published": "published",
            "replay.replaying": "ReplayPlan replayed",
            "replay.results": "Paid Played Recorded ReplayResult Told",
            "replay.sessions": "PAUSES Pauses Session",
            "replay.sources": "sessions_at sessions_in",
            "replay.tariffs": "TARIFFS Tariff tariff_from tariff_of",
            "report.replay_figures": "Billed Scene billed scenes",
            "report.replay_page": "replay_page",
            "report.speed_page": "speed_page",
            "report.wording": "money",
            "results": "Result Row",
            "running": "run",
            "speed": "NAMES",
            "speed.jobs": "Bench",
            "speed.program": "machine measure versions",
            "speed.tables": "Table",
            "strategies": "DIALOGUE_STRATEGIES WORK_STRATEGIES strategy_named",
            "strategy": "counter",
            "svg": "tokens_short",
        },
    )
