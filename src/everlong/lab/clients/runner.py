"""The runner: one client in one mode, with the model, the gateway in front of it, and the witness in front of that.

Owns the client's working folder. `processes` runs its driver, `verdict` judges the result.
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from everlong.errors import EverlongError
from everlong.lab.clients.script import Work
from everlong.lab.clients.table import ClientRow
from everlong.lab.clients.verdict import RunRecord, Verdict, judge, left_out
from everlong.lab.clients.witness import MARK, Witness
from everlong.lab.environments import Environments
from everlong.lab.processes import PATIENCE, REFUSALS, Drivers, serving
from everlong.llm import ScriptedOllama, ScriptedServer, Window

__all__ = ["Runner"]

DRIVERS = Path(__file__).parent / "drivers"
DRIVER_MODULES = "everlong.lab.clients.drivers"


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs clients through the gateway, or without it if `direct`. `here` runs them with this interpreter.

    `tasks`, if given, replace each client's own. `records`, if it is a folder, gets every request of every client for
    inspection.
    """

    environments: Environments
    tasks: Work | None = None
    direct: bool = False
    here: bool = False
    records: Path | None = None
    #: Seconds for one conversation.
    patience: float = PATIENCE

    @property
    def drivers(self) -> Drivers:
        """How the drivers are run."""
        return Drivers(self.environments, self.here, self.patience)

    def all_modes(self, row: ClientRow) -> Iterator[Verdict]:
        """Yield a row for every mode of a client, or one row that says why it is not available here."""
        reason = self.drivers.ready(row.home)
        if reason:
            yield left_out(row.name, reason)
            return
        for mode, window in product(row.modes, row.windows):
            try:
                yield self.run(row, mode, window)
            except EverlongError as error:  # a failing mode must not affect the others
                yield Verdict(client=row.name, mode=mode, window=window, faults=(str(error),))

    def run(self, row: ClientRow, mode: str, window: int) -> Verdict:
        """Run one whole conversation; return its row."""
        tasks = self.tasks or row.tasks
        with tempfile.TemporaryDirectory(prefix="everlong-client-") as made:
            folder = Path(made).resolve() / "work"
            folder.mkdir()
            tasks.write(folder)
            clerk = tasks.script(folder)
            refusing = Window(window, told=True, body=REFUSALS.get(mode.partition(" ")[0], Window().body))
            cutting = ScriptedOllama(default=window, refuses=False) if row.truncates else None
            limit = Window() if row.truncates else refusing
            with (
                ScriptedServer(clerk, window=limit, models=(row.model_in(mode),), ollama=cutting) as model,
                self._serve(model) as target,
                Witness(target) as witness,
            ):
                task: dict[str, Any] = {"address": witness.address, "mode": mode, "model": row.model_in(mode)}
                task |= {"prompts": tasks.prompts()}
                report = self.drivers.drive(row.home, DRIVER_MODULES, row.driver, task, folder)
            record = RunRecord(
                version=report.get("version", ""),
                answers=report.get("answers", ()),
                error=report.get("error", ""),
                exchanges=witness.exchanges,
                requests=model.requests,
                missing=clerk.missing,
                window=window,
            )
            self._save(row, mode, record)
            return judge(row.name, mode, tasks, record)

    @contextmanager
    def _serve(self, model: ScriptedServer) -> Iterator[str]:
        """Start the gateway unless the run is direct; yield the address that the client gets."""
        if self.direct:
            yield model.address
            return
        with serving(model.url) as address:
            yield address

    def _save(self, row: ClientRow, mode: str, record: RunRecord) -> None:
        if self.records is None:
            return
        self.records.mkdir(parents=True, exist_ok=True)
        lines = [
            {"method": one.method, "path": one.path, "status": one.status, "headers": one.headers}
            | {"body": one.body.decode("utf-8", "replace"), "trouble": one.trouble, "answer": one.answer_headers}
            for one in record.exchanges
        ]
        sent = [
            {"tokens": one.tokens, "fmt": one.fmt, "made_of": one.headers.get(MARK)}
            | {"body": one.body.decode("utf-8", "replace")}
            for one in record.requests
        ]
        name = f"{row.name}-{mode.replace(' ', '-')}-{record.window}"
        text = json.dumps({"client": lines, "upstream": sent}, ensure_ascii=False, indent=1)
        (self.records / f"{name}.json").write_text(text, encoding="utf-8")
