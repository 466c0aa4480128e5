"""The runner: one framework in one mode, with or without our adapter, directly against the scripted provider.

Owns the framework's working folder and our adapter's store, in which compactions are counted afterwards.
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everlong.core import Point
from everlong.errors import EverlongError
from everlong.lab.adapters.errand import Errand
from everlong.lab.adapters.table import AdapterRow
from everlong.lab.adapters.verdict import OURS, AdapterRun, AdapterVerdict, judge_adapter
from everlong.lab.environments import Environments
from everlong.lab.processes import PATIENCE, REFUSALS, Drivers, serving
from everlong.llm import ScriptedServer, Window
from everlong.store import open_store

__all__ = ["AdapterRunner"]

DRIVER_MODULES = "everlong.lab.adapters.drivers"


@dataclass(frozen=True, slots=True)
class AdapterRunner:
    """Runs frameworks. `here` runs them with this interpreter; `errand` and `window` replace the row's own.

    `records`, if it is a folder, gets every request for inspection.
    """

    environments: Environments
    errand: Errand | None = None
    window: int | None = None
    here: bool = False
    records: Path | None = None
    #: Seconds for one conversation.
    patience: float = PATIENCE

    @property
    def drivers(self) -> Drivers:
        """How the drivers are run."""
        return Drivers(self.environments, self.here, self.patience)

    def all_runs(self, row: AdapterRow) -> Iterator[AdapterVerdict]:
        """Yield a row for every run of a framework, or one row that says why it is not available here."""
        reason = self.drivers.ready(row.home)
        if reason:
            yield AdapterVerdict(framework=row.name, mode="", how="", left_out=reason)
            return
        for mode, how in row.runs():
            try:
                yield self.run(row, mode, how)
            except EverlongError as error:  # a failing run must not affect the others
                yield AdapterVerdict(framework=row.name, mode=mode, how=how, faults=(str(error),))

    def run(self, row: AdapterRow, mode: str, how: str) -> AdapterVerdict:
        """Run one whole conversation; return its row."""
        errand, window = self.errand or row.errand, self.window or row.window
        with tempfile.TemporaryDirectory(prefix="everlong-adapter-") as made:
            folder = Path(made).resolve() / "work"
            folder.mkdir()
            errand.write(folder)
            clerk = errand.script(folder)
            store = f"sqlite:///{folder.parent / 'everlong.db'}"
            limit = Window(window, body=REFUSALS.get(mode.partition(" ")[0], Window().body))
            with (
                ScriptedServer(clerk, window=limit, models=(row.model_in(mode),)) as model,
                self._serve(row, how, model.url, store) as everlong,
            ):
                job: dict[str, Any] = {"address": model.address, "mode": mode, "model": row.model_in(mode)}
                job |= {"prompts": errand.prompts()}
                job |= {"how": "everlong" if how in OURS else how, "store": store, "everlong": everlong}
                job |= {"window": None if how == "untold" else window}
                report = self.drivers.drive(row.home, DRIVER_MODULES, row.driver, job, folder)
            run = AdapterRun(
                framework=row.name,
                mode=mode,
                how=how,
                window=window,
                version=report.get("version", ""),
                answers=report.get("answers", ()),
                error=report.get("error", ""),
                requests=model.requests,
                compactions=_compactions(report.get("compactions"), store) if how in OURS else None,
            )
            self._save(run)
            return judge_adapter(run, errand, clerk)

    @contextmanager
    def _serve(self, row: AdapterRow, how: str, upstream: str, store: str) -> Iterator[str]:
        """Start `everlong serve` if the adapter needs it; yield its address."""
        if not row.served or how not in OURS:
            yield ""
            return
        with serving(upstream, store) as address:
            yield address

    def _save(self, run: AdapterRun) -> None:
        if self.records is None:
            return
        self.records.mkdir(parents=True, exist_ok=True)
        sent = [
            {"tokens": one.tokens, "cached": one.cached, "fmt": one.fmt, "body": json.loads(one.body)}
            for one in run.requests
        ]
        record = {"error": run.error, "answers": list(run.answers), "compactions": run.compactions, "requests": sent}
        name = f"{run.framework}-{run.mode.replace(' ', '-')}-{run.how}.json"
        (self.records / name).write_text(json.dumps(record, ensure_ascii=False, indent=1), encoding="utf-8")


def _compactions(reported: int | None, store: str) -> int:
    """Return what the driver reported; else the number of points in the store, counting shared ones once."""
    if reported is not None:
        return reported
    with open_store(store) as threads:
        rows = [row for thread in threads.threads(archived=None) for row, _ in threads.points(thread.id)]
    return len({row.entry for row in rows if isinstance(row.entry, Point)})
