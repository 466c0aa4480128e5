"""The shape of the tree: rooms, doors, sizes, words. Each test looks at the whole tree; exceptions have reasons."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import everlong
import everlong.testing
from everlong.compress import PRESET_NAMES
from everlong.wire import FORMATS

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "everlong"
SOURCES = sorted(path for path in SOURCE.rglob("*.py") if "node_modules" not in path.parts)
TESTS = sorted((ROOT / "tests").rglob("*.py"))
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
ROOMS = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))

MOST_FUNCTION_LINES = 60
MOST_MODULES = 15
MOST_GERUNDS = 12
CRUMB_LINES = 60  # a module below this with one importer belongs into it

#: Packages whose modules are rows of a table: one thing a file, as many as there are things.
TABLES = {
    "adapters": "one framework a file",
    "cli/commands": "one command a file",
    "compress/presets": "one preset a file",
    "lab/adapters/drivers": "one framework a file",
    "lab/clients/drivers/frameworks": "one client a file",
    "lab/clients/drivers/programs": "one client a file",
    "lab/clients/drivers/sdks": "one client a file",
    "lab/measures": "one measure a file",
    "lab/peers/adapters": "one peer a file",
    "lab/speed/counters": "one counter a file",
    "lab/speed/workers": "one job a file, started by name in another process",
    "wire/formats": "one format a folder",
    "wire/libraries": "one library a file",
}
#: Modules that another process starts by name, or that keep a heavy import away from their one importer.
ALONE = {
    "store/sqlite/removal.py": "the only module that deletes; the test of law 1 reads it alone",
    "store/postgres/removal.py": "the only module that deletes; the test of law 1 reads it alone",
}
#: path -> how many `except Exception` it has, each with its reason beside it. The edges of the process only.
BROAD_CATCHES = {
    "engine/events.py": 1,
    "gateway/http/endpoints.py": 1,
    "lab/strategies/strategy.py": 1,
    "web/documents/reader.py": 1,
}
#: Where a format or a preset may be named in a comparison, a match or a table: its own folder and the one table.
NAMED_IN: dict[str, str] = {
    "compress/presets/": "a preset's own file, and the table of them",
    "wire/formats/": "a format's own folder, and the table of them",
    "gateway/upstreams/providers.py": "providers, of which one has the name of a format",
    "llm/endpoints.py": "providers, of which one has the name of a format",
    "store/exports.py": "session formats, of which one has the name of a preset",
    "web/state/models.py": "providers, of which one has the name of a format",
    "windows/providers.py": "spellings of providers",
}
#: `auto` and `off` are also modes, and words of other settings.
NAMES = (set(FORMATS) | set(PRESET_NAMES)) - {"auto", "off"}

EMPTY_NAMES = re.compile(r"(utils?|helpers?|common|misc|managers?|base)")
PUBLIC = """
    Agent Author BudgetImpossible Call ContextOverflow Engine EverlongError Failed Finished Fitted HttpModel InputError
    MalformedHistory MediaRefused Message NoThread NotRecovered Prepared ProviderError RateLimited ReplyLimitExceeded
    Role Said Settings StoreBusy StoreError Summaries Text ThreadBusy ThreadChanged ThreadExists Usage WireError
    converse count endpoint_at fit open_engine open_store tool window
""".split()  # noqa: SIM905 - a list of names reads better in lines
TESTING = "Answer Refusal ScriptedModel ScriptedServer Window echo in_turn reads_files".split()  # noqa: SIM905


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def named(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def in_table(path: Path) -> bool:
    return path.parent.relative_to(SOURCE).as_posix() in TABLES


def imports(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every `from everlong… import …` of a file: the module and the names."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "everlong":
            yield node.module or "", tuple(alias.name for alias in node.names)


def doors() -> Iterator[tuple[Path, dict[str, set[str]]]]:
    """Every file that opens a door, with the names it gives, by module."""
    for path in SOURCES:
        for node in tree(path).body:
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and node.orelse:
                given: dict[str, set[str]] = {}
                for line in node.body:
                    assert isinstance(line, ast.ImportFrom)
                    assert line.module
                    given.setdefault(line.module, set()).update(alias.asname or alias.name for alias in line.names)
                yield path, given


def test_no_package_has_more_modules_than_a_reader_can_hold() -> None:
    counts = Counter(path.parent for path in SOURCES if path.stem not in ("__init__", "__main__"))
    crowded = {
        path.relative_to(SOURCE).as_posix(): count
        for path, count in counts.items()
        if count > MOST_MODULES and path.relative_to(SOURCE).as_posix() not in TABLES
    }
    assert not crowded


def test_no_module_is_a_crumb() -> None:
    importers: dict[str, set[str]] = {}
    for path in SOURCES:
        for module, names in imports(path):
            for target in (module, *(f"{module}.{name}" for name in names)):
                importers.setdefault(target, set()).add(module_of(path))
    crumbs, packages = [], {"", *(module_of(path) for path in SOURCES if path.name == "__init__.py")}
    for path in SOURCES:
        if path.stem in ("__init__", "__main__") or in_table(path) or named(path) in ALONE:
            continue
        (importer, *others) = sorted(importers.get(module_of(path), {""}))
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines < CRUMB_LINES and not others and importer not in packages:
            crumbs.append(f"{named(path)} belongs into {importer}")
    assert not crumbs


def test_modules_are_named_by_nouns_that_say_something() -> None:
    stems = [path.stem for path in SOURCES]
    assert not [stem for stem in stems if EMPTY_NAMES.fullmatch(stem)]
    gerunds = sorted(named(path) for path in SOURCES if path.stem.endswith("ing"))
    assert len(gerunds) <= MOST_GERUNDS, gerunds


def test_functions_stay_short() -> None:
    for path in SOURCES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                assert lines <= MOST_FUNCTION_LINES, f"{named(path)}: {node.name} has {lines} lines"


def test_modules_say_what_they_own() -> None:
    for path in SOURCES:
        assert ast.get_docstring(tree(path)), named(path)
        for node in tree(path).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                names = ast.literal_eval(node.value)
                assert names == sorted(set(names), key=lambda name: (not name.isupper(), name.islower(), name))


def test_doors_give_what_they_promise() -> None:
    opened = dict(doors())
    without = {"adapters", "cli"}  # each adapter is a door of its own; nobody imports the program
    assert {path.parent.name for path in opened if path.parent.parent == SOURCE} >= set(ROOMS) - without
    for path, given in opened.items():
        package = import_module(module_of(path))
        names = [name for listed in given.values() for name in listed]
        assert sorted(names) == package.__all__, f"{named(path)}: the two lists of the door differ"
        for home, listed in given.items():
            for name in listed:
                assert getattr(package, name) is getattr(import_module(home), name), f"{named(path)}: {name}"
                folder = path.parent if path.name == "__init__.py" else path
                taken = (folder / f"{name}.py").exists() or (folder / name).is_dir()
                assert not taken, f"{named(path)}: {name} is a module too"


def test_a_door_gives_nothing_that_nobody_uses() -> None:
    used: dict[str, set[str]] = {}
    for path in (*SOURCES, *(ROOT / "scripts").glob("*.py")):
        room = path.relative_to(SOURCE).parts[0] if path.is_relative_to(SOURCE) else ""
        for module, names in imports(path):
            if module.count(".") == 1 and module.split(".")[1] != room:
                used.setdefault(module, set()).update(names)
    described = ROOT / "docs" / "reference" / "api"  # has every name, used or not
    shown = "\n".join(page.read_text(encoding="utf-8") for page in PAGES if page.parent != described)
    for path, given in doors():
        package = module_of(path)
        if package.count(".") != 1 or package == "everlong.testing":
            continue
        names = {name for listed in given.values() for name in listed}
        unused = sorted(name for name in names - used.get(package, set()) if not re.search(rf"\b{name}\b", shown))
        assert not unused, f"{package}: only tests use {unused}; they may import the module itself"


def test_tests_and_scripts_come_through_the_doors() -> None:
    """A test may look inside the package it mirrors, and at what no door shows."""
    given = {module_of(path): {name for names in homes.values() for name in names} for path, homes in doors()}
    past = []
    for path in (*TESTS, *sorted((ROOT / "scripts").glob("*.py"))):
        own = path.relative_to(ROOT).parts[1]
        for module, names in imports(path):
            room = ".".join(module.split(".")[:2])
            if module.count(".") > 1 and room.split(".")[1] != own and set(names) & given.get(room, set()):
                past.append(f"{path.relative_to(ROOT)}: {module} {names}")
    assert not past


def test_nobody_asks_which_format_or_preset_it_is() -> None:
    asked = []
    for path in SOURCES:
        if named(path).startswith(tuple(NAMED_IN)):
            continue
        for node in ast.walk(tree(path)):
            words = branched_on(node) & NAMES
            asked += [f"{named(path)}:{getattr(node, 'lineno', 0)} {word}" for word in sorted(words)]
    assert not asked


def branched_on(node: ast.AST) -> set[str]:
    """The words that a comparison, a case or a table's keys name."""
    match node:
        case ast.Compare(left=left, comparators=others):
            looked = [left, *others]
        case ast.MatchValue(value=value):
            looked = [value]
        case ast.Dict(keys=keys):
            looked = [key for key in keys if key is not None]
        case _:
            return set()
    inner = [deep for one in looked for deep in (one, *getattr(one, "elts", ()))]
    return {one.value for one in inner if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def test_broad_catches_stand_only_at_the_edges() -> None:
    found = Counter(
        named(path)
        for path in SOURCES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in ("Exception", "BaseException"))
    )
    assert dict(found) == BROAD_CATCHES


def test_public_names_are_pinned_and_documented() -> None:
    assert everlong.__all__ == sorted(PUBLIC)
    assert everlong.testing.__all__ == sorted(TESTING)
    for package in (everlong, everlong.testing):
        for name in package.__all__:
            assert getattr(package, name).__doc__, name


def test_pages_name_files_and_functions_that_exist() -> None:
    named_file = re.compile(r"`(?:src/everlong/)?([\w/]+\.py)(?::([\w.]+))?`")
    for page in (*PAGES, *sorted((ROOT / "design").glob("*.md"))):
        for file, function in named_file.findall(page.read_text(encoding="utf-8")):
            if "/" not in file or "NAME" in file:
                continue  # a file of the reader's own
            places = [base / file for base in (SOURCE, ROOT, ROOT / "tests") if (base / file).is_file()]
            assert places, f"{page.name}: there is no {file}"
            holder: object = import_module(module_of(places[0])) if function else None
            for name in filter(None, function.split(".")):
                holder = getattr(holder, name)


def test_the_map_of_the_house_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, "scripts/draw_house.py", "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "run python scripts/draw_house.py"


def test_the_picture_of_scale_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, "scripts/draw_scale.py", "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "run python scripts/draw_scale.py"


def test_tests_mirror_the_source() -> None:
    beside = {"chaos", "docs", "failures", "properties", "requirements"}
    folders = {path.name for path in (ROOT / "tests").iterdir() if (path / "__init__.py").exists()}
    assert folders - beside <= set(ROOMS)
    assert set(ROOMS) <= folders


def test_tests_use_no_mocks_skips_or_sleeps() -> None:
    forbidden = re.compile(
        r"unittest\.mock|MagicMock|mocker\.|pytest\.skip|mark\.skip|importor[s]kip|time\.sleep"  # shape
    )
    for path in TESTS:
        if path != Path(__file__):
            assert not forbidden.search(path.read_text(encoding="utf-8")), path


def loaded_by(code: str) -> set[str]:
    probe = f"import sys, everlong; {code}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_everlong_loads_no_network_database_or_server() -> None:
    heavy = {"asyncio", "http", "httpx", "rich", "socket", "sqlite3", "ssl", "starlette", "click"}
    assert not loaded_by("pass") & {*heavy, "msgspec", "splintr"}
    counted = "everlong.count([{'role': 'user', 'content': 'hi'}], model='gpt-4o'); everlong.window('gpt-4o')"
    assert not loaded_by(counted) & heavy
