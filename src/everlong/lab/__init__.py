"""The lab: measures on real conversations what survives a compaction and what it costs, without a model as judge.

- `measures`: what is left of a history under a budget.
- `resume`: whether the next tool calls find what they need after a compaction.
- `replay`: what recorded sessions would have cost.
- `speed`: Everlong's speed next to other libraries and gateways.
- `clients`, `adapters`: real clients behind the gateway, and frameworks with our adapters.
- `capacity`: the hardware that a rate of requests needs.
- `secrets`: how many secrets are found in texts.
- `datasets`: public conversations, converted.

Nothing here runs in production.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.lab.adapters.results import (
        adapter_table as adapter_table,
        write_adapter_runs as write_adapter_runs,
    )
    from everlong.lab.adapters.runner import AdapterRunner as AdapterRunner
    from everlong.lab.adapters.table import ADAPTERS as ADAPTERS
    from everlong.lab.adapters.verdict import AdapterVerdict as AdapterVerdict
    from everlong.lab.capacity.arrivals import Arrivals as Arrivals
    from everlong.lab.capacity.calibration import measured_costs as measured_costs
    from everlong.lab.capacity.costs import (
        COST_SIZES as COST_SIZES,
        Costs as Costs,
        read_costs as read_costs,
        recorded_costs as recorded_costs,
        write_costs as write_costs,
    )
    from everlong.lab.capacity.lengths import LENGTHS as LENGTHS, Lengths as Lengths, counted_lengths as counted_lengths
    from everlong.lab.capacity.plan import CapacityPlan as CapacityPlan, Machine as Machine, plan_for as plan_for
    from everlong.lab.capacity.simulation import Waits as Waits, paper_waits as paper_waits, play_plan as play_plan
    from everlong.lab.cases import Cases as Cases, every as every
    from everlong.lab.clients.claude_sessions import LONG_SESSIONS as LONG_SESSIONS, SESSIONS as SESSIONS
    from everlong.lab.clients.results import run_table as run_table, write_runs as write_runs
    from everlong.lab.clients.runner import Runner as Runner
    from everlong.lab.clients.table import CLIENTS as CLIENTS
    from everlong.lab.clients.verdict import Verdict as Verdict
    from everlong.lab.data import (
        DATA_VARIABLE as DATA_VARIABLE,
        HALVES as HALVES,
        Conversation as Conversation,
        agents as agents,
        data_folder as data_folder,
        dialogue_names as dialogue_names,
        dialogues as dialogues,
        in_half as in_half,
    )
    from everlong.lab.datasets.dialogue import write_dataset as write_dataset
    from everlong.lab.datasets.projects import PROJECTS as PROJECTS, ProjectRow as ProjectRow
    from everlong.lab.datasets.table import (
        DATASETS as DATASETS,
        DatasetRow as DatasetRow,
        convert_dataset as convert_dataset,
    )
    from everlong.lab.environments import Environments as Environments, folder_from as folder_from
    from everlong.lab.measures.dialogs import question_cases as question_cases
    from everlong.lab.measures.edits import edit_cases as edit_cases
    from everlong.lab.measures.measurement import (
        Group as Group,
        Job as Job,
        Plan as Plan,
        Result as Result,
        Row as Row,
        measured as measured,
        summed as summed,
    )
    from everlong.lab.measures.probes import probe_cases as probe_cases, probes_in as probes_in
    from everlong.lab.pool import run as run
    from everlong.lab.replay.caches import Cache as Cache
    from everlong.lab.replay.courses import (
        OVERHEAD_FORMS as OVERHEAD_FORMS,
        Beside as Beside,
        OverheadForm as OverheadForm,
        Terms as Terms,
    )
    from everlong.lab.replay.grid import (
        CellResult as CellResult,
        GridPlan as GridPlan,
        as_observations as as_observations,
        cells_of as cells_of,
        observed_in as observed_in,
        walk_grid as walk_grid,
    )
    from everlong.lab.replay.plan import ReplayPlan as ReplayPlan, replayed as replayed
    from everlong.lab.replay.playback import played as played
    from everlong.lab.replay.policies import (
        COMPARED as COMPARED,
        UNCUT as UNCUT,
        policy_named as policy_named,
        policy_names as policy_names,
    )
    from everlong.lab.replay.results import (
        Recorded as Recorded,
        ReplayResult as ReplayResult,
        SessionFacts as SessionFacts,
    )
    from everlong.lab.replay.sessions import PAUSES as PAUSES, Pauses as Pauses, Session as Session
    from everlong.lab.replay.sources import (
        published as published,
        sessions_at as sessions_at,
        sessions_in as sessions_in,
    )
    from everlong.lab.replay.tariffs import (
        TARIFFS as TARIFFS,
        Tariff as Tariff,
        tariff_from as tariff_from,
        tariff_of as tariff_of,
    )
    from everlong.lab.report.continuity_page import (
        CONTINUITY_COLUMNS as CONTINUITY_COLUMNS,
        continuity_page as continuity_page,
    )
    from everlong.lab.report.measures_page import measures_page as measures_page
    from everlong.lab.report.numbers import money as money, tokens_short as tokens_short
    from everlong.lab.report.replay_figures import Billed as Billed, Scene as Scene, billed as billed, scenes as scenes
    from everlong.lab.report.replay_page import replay_page as replay_page
    from everlong.lab.report.resume_page import (
        RESUME_COLUMNS as RESUME_COLUMNS,
        resume_cells as resume_cells,
        resume_page as resume_page,
        resume_source_cells as resume_source_cells,
    )
    from everlong.lab.report.speed_page import speed_page as speed_page
    from everlong.lab.resume.results import ResumeResult as ResumeResult
    from everlong.lab.resume.run import (
        NEXT_CALLS as NEXT_CALLS,
        ResumePlan as ResumePlan,
        resume_sessions as resume_sessions,
    )
    from everlong.lab.secrets.corpus import SECRETS_SEED as SECRETS_SEED
    from everlong.lab.secrets.measure import (
        KIND_SETS as KIND_SETS,
        Alarms as Alarms,
        Found as Found,
        alarms_in as alarms_in,
        find_secrets as find_secrets,
        lines_written as lines_written,
        texts_in as texts_in,
        texts_of as texts_of,
    )
    from everlong.lab.speed import BENCHMARK_NAMES as BENCHMARK_NAMES
    from everlong.lab.speed.bench import Bench as Bench
    from everlong.lab.speed.benchmarks import machine as machine, measure as measure, versions as versions
    from everlong.lab.speed.tables import Table as Table, figure as figure
    from everlong.lab.strategies.strategy import counter as counter
    from everlong.lab.strategies.table import (
        DIALOGUE_STRATEGIES as DIALOGUE_STRATEGIES,
        WORK_STRATEGIES as WORK_STRATEGIES,
        strategy_named as strategy_named,
        strategy_names as strategy_names,
    )
    from everlong.lab.transcripts import (
        conversations_at as conversations_at,
        conversations_of as conversations_of,
        hidden as hidden,
        save as save,
    )
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "adapters.results": "adapter_table write_adapter_runs",
            "adapters.runner": "AdapterRunner",
            "adapters.table": "ADAPTERS",
            "adapters.verdict": "AdapterVerdict",
            "capacity.arrivals": "Arrivals",
            "capacity.calibration": "measured_costs",
            "capacity.costs": "COST_SIZES Costs read_costs recorded_costs write_costs",
            "capacity.lengths": "LENGTHS Lengths counted_lengths",
            "capacity.plan": "CapacityPlan Machine plan_for",
            "capacity.simulation": "Waits paper_waits play_plan",
            "cases": "Cases every",
            "clients.claude_sessions": "LONG_SESSIONS SESSIONS",
            "clients.results": "run_table write_runs",
            "clients.runner": "Runner",
            "clients.table": "CLIENTS",
            "clients.verdict": "Verdict",
            "data": "Conversation DATA_VARIABLE HALVES agents data_folder dialogue_names dialogues in_half",
            "datasets.dialogue": "write_dataset",
            "datasets.projects": "PROJECTS ProjectRow",
            "datasets.table": "DATASETS DatasetRow convert_dataset",
            "environments": "Environments folder_from",
            "measures.dialogs": "question_cases",
            "measures.edits": "edit_cases",
            "measures.measurement": "Group Job Plan Result Row measured summed",
            "measures.probes": "probe_cases probes_in",
            "pool": "run",
            "replay.caches": "Cache",
            "replay.courses": "Beside OVERHEAD_FORMS OverheadForm Terms",
            "replay.grid": "CellResult GridPlan as_observations cells_of observed_in walk_grid",
            "replay.plan": "ReplayPlan replayed",
            "replay.playback": "played",
            "replay.policies": "COMPARED UNCUT policy_named policy_names",
            "replay.results": "Recorded ReplayResult SessionFacts",
            "replay.sessions": "PAUSES Pauses Session",
            "replay.sources": "published sessions_at sessions_in",
            "replay.tariffs": "TARIFFS Tariff tariff_from tariff_of",
            "report.continuity_page": "CONTINUITY_COLUMNS continuity_page",
            "report.measures_page": "measures_page",
            "report.numbers": "money tokens_short",
            "report.replay_figures": "Billed Scene billed scenes",
            "report.replay_page": "replay_page",
            "report.resume_page": "RESUME_COLUMNS resume_cells resume_page resume_source_cells",
            "report.speed_page": "speed_page",
            "resume.results": "ResumeResult",
            "resume.run": "NEXT_CALLS ResumePlan resume_sessions",
            "secrets.corpus": "SECRETS_SEED",
            "secrets.measure": "Alarms Found KIND_SETS alarms_in find_secrets lines_written texts_in texts_of",
            "speed": "BENCHMARK_NAMES",
            "speed.bench": "Bench",
            "speed.benchmarks": "machine measure versions",
            "speed.tables": "Table figure",
            "strategies.strategy": "counter",
            "strategies.table": "DIALOGUE_STRATEGIES WORK_STRATEGIES strategy_named strategy_names",
            "transcripts": "conversations_at conversations_of hidden save",
        },
    )
