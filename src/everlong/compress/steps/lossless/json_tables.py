"""Write lists of records as tables: the names of the fields once, then a line for each record.

Nothing is lost: `from_table` returns the JSON value, and every number stays as it was written. A text that is not one
JSON value with a list of records in it, or that would not become shorter, stays unchanged.

    [table of 3 records at items, split by tabs; blank: no such key; name=value: the same in all; beside it: {"page":1}]
    id	user.login	tags	state=open
    17	ada	["x","y"]
    18		[]
    19	"007"	null

A cell is JSON, but unambiguous strings have no quotes. A dot leads into a nested object; names with unusual characters
are JSON strings.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn, TypeAlias, cast

from everlong.compress.draft import Draft, Task
from everlong.compress.text.substitutes import Shorter, each_text, open_results, shorten
from everlong.core import Json, JsonObject
from everlong.errors import InputError
from everlong.relevance import in_language

__all__ = ["from_table", "json_tables", "to_table"]

STEP = "json_tables"

FEWEST_RECORDS = 2
SPARSEST = 4  # at least one cell in this many must be filled, or objects do not become columns
DEEPEST = 6  # levels of nested objects that become columns, and levels to search for the list
LONGEST_NUMBER = 1_000  # digits

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Words:
    title: str
    at: str
    split: str
    blank: str
    same: str
    beside: str


WORDS = {
    "en": _Words(
        title="table of {records} records",
        at=" at {path}",
        split=", split by tabs",
        blank="; blank: no such key",
        same="; name=value: the same in all",
        beside="; beside it: {rest}",
    ),
    "zh": _Words(
        title="表格，{records} 条记录",
        at="，位于 {path}",
        split="，以制表符分隔",
        blank="；空白：无此键",
        same="；键=值：全部相同",
        beside="；其余：{rest}",
    ),
}

NAME = r"[\w$@#:/+*-]+"
STRING = r'"(?:[^"\\]|\\.)*+"'
PATH = rf"(?:{NAME}|{STRING})(?:\.(?:{NAME}|{STRING}))*+"
BARE_NAME = re.compile(NAME)
NAMES = re.compile(rf"{NAME}|{STRING}")
COLUMN = re.compile(rf"({PATH})(?:=(.*))?")
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
LITERALS: dict[str, Json] = {"true": True, "false": False, "null": None}
NEEDS_QUOTES = re.compile(r"\A[\s\"\[{]|\s\Z|[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
ESCAPED = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
SURROGATE = re.compile(r"[\ud800-\udfff]")


class _Number(str):
    """A number as it was written: 1.10 stays 1.10, and long numbers lose no digit."""

    __slots__ = ()


def json_tables(draft: Draft, task: Task, *, always: bool = False) -> Draft:
    """Write every open tool result that is a list of records as a table."""
    if draft.total <= task.target and not always:
        return draft
    wanted = []
    for position, index, result in open_results(draft):
        table = each_text(result, partial(to_table, language=task.language))
        if table is not None:
            before, after = len(result.text), len(table.text)
            reason = f"list of records rewritten as a table: {before:,} characters in {after:,}"
            wanted.append(Shorter(position, index, table, reason))
    return shorten(draft, task, STEP, wanted)


# --- writing --------------------------------------------------------------------------------------


def to_table(text: str, *, language: str = "en") -> str | None:
    """Return the text as a table; None if it has no list of records, or if a table is not shorter."""
    if text.lstrip()[:1] not in ("[", "{") or SURROGATE.search(text):
        return None
    try:
        value = _parsed(text)
        found = _list_in(value)
        table = None if found is None else _table(value, *found, in_language(WORDS, language))
    except (ValueError, RecursionError):
        return None
    return table if table is not None and len(table) < len(text) else None


def _parsed(text: str) -> Json:
    """Parse JSON with numbers as written. Raises ValueError for anything that a table could not return."""
    return cast(
        Json,
        json.loads(text, object_pairs_hook=_object, parse_int=_number, parse_float=_number, parse_constant=_refuse),
    )


def _object(pairs: list[tuple[str, Json]]) -> JsonObject:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name occurs twice")
    return fields


def _number(digits: str) -> _Number:
    if len(digits) > LONGEST_NUMBER:
        raise ValueError("too long for a number")
    return _Number(digits)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _list_in(value: Json) -> tuple[Path, list[JsonObject]] | None:
    """Return the longest list of objects that is reachable through names only."""
    longest: tuple[Path, list[JsonObject]] | None = None
    todo: list[tuple[Path, Json]] = [((), value)]
    for path, node in todo:
        if isinstance(node, dict) and len(path) < DEEPEST:
            todo += [((*path, key), inner) for key, inner in node.items() if isinstance(inner, dict | list)]
        elif isinstance(node, list) and len(node) > len(longest[1] if longest else ()):
            records = [record for record in node if isinstance(record, dict)]
            if len(records) == len(node) >= FEWEST_RECORDS:
                longest = path, records
    return longest


def _table(value: Json, path: Path, records: list[JsonObject], words: _Words) -> str | None:
    opened: set[Path] = set()
    columns = _columns((), records, len(records), opened)
    if columns is None:
        return None
    rows = [dict(_cells(record, (), opened)) for record in records]
    same = {column: cell for column in columns if (cell := _same_in_all(column, rows)) is not None}
    varying = [column for column in columns if column not in same]
    rest = _without(value, path) if isinstance(value, dict) else {}
    blanks = any(column not in row for row in rows for column in varying)
    notes = (words.blank if blanks else "") + (words.same if same else "")
    title = words.title.format(records=len(records)) + (words.at.format(path=_dotted(path)) if path else "")
    beside = words.beside.format(rest=_json(rest)) if rest else ""
    header = [*map(_dotted, varying), *(f"{_dotted(column)}={cell}" for column, cell in same.items())]
    lines = ["\t".join(row.get(column, "") for column in varying) for row in rows]
    return "\n".join([f"[{title}{words.split}{notes}{beside}]", "\t".join(header), *lines])


def _columns(prefix: Path, objects: list[JsonObject], total: int, opened: set[Path]) -> list[Path] | None:
    """Return the columns of one level, nested ones in their place; None if the objects have little in common."""
    values: defaultdict[str, list[Json]] = defaultdict(list)
    for fields in objects:
        for key, value in fields.items():
            values[key].append(value)
    if not values or len(values) * total > SPARSEST * sum(map(len, objects)):
        return None
    columns: list[Path] = []
    for key, found in values.items():
        path = (*prefix, key)
        inner = [value for value in found if isinstance(value, dict) and value]
        deeper = _columns(path, inner, total, opened) if inner and len(path) < DEEPEST else None
        if deeper is not None:
            opened.add(path)
            columns += deeper
        if deeper is None or len(inner) < len(found):
            columns.append(path)
    return columns


def _cells(fields: JsonObject, prefix: Path, opened: set[Path]) -> Iterator[tuple[Path, str]]:
    for key, value in fields.items():
        path = (*prefix, key)
        if isinstance(value, dict) and value and path in opened:
            yield from _cells(value, path, opened)
        else:
            yield path, _cell(value)


def _same_in_all(column: Path, rows: Sequence[Mapping[Path, str]]) -> str | None:
    cell = rows[0].get(column)
    return cell if all(row.get(column) == cell for row in rows) else None


def _without(fields: JsonObject, path: Path) -> JsonObject:
    """Return the object without the value at the path, and without objects that become empty."""
    key, *deeper = path
    inner = fields[key]
    left = _without(inner, tuple(deeper)) if deeper and isinstance(inner, dict) else {}
    return {name: left if name == key else value for name, value in fields.items() if name != key or left}


def _cell(value: Json) -> str:
    """Return a value as a cell.

    Example: the strings open -> open, 007 -> 007, 7 -> "7"; the number 7 -> 7; null -> null
    """
    if isinstance(value, _Number) or not isinstance(value, str):
        return _json(value)
    bare = value and value not in LITERALS and not NEEDS_QUOTES.search(value) and not NUMBER.fullmatch(value)
    return value if bare else _json(value)


def _json(value: Json) -> str:
    """Return compact JSON that is valid UTF-8, whatever its strings contain."""
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_json(key)}:{_json(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    written = json.dumps(value, ensure_ascii=False)
    return ESCAPED.sub(lambda sign: f"\\u{ord(sign[0]):04x}", written)


def _dotted(path: Path) -> str:
    return ".".join(name if BARE_NAME.fullmatch(name) else _json(name) for name in path)


# --- reading --------------------------------------------------------------------------------------


def from_table(table: str) -> Json:
    """Return the value that `to_table` wrote. Raises InputError for anything else."""
    try:
        title, header, *lines = table.split("\n")
        found = next(filter(None, (pattern.fullmatch(title) for pattern in TITLES)))
        columns = [_column(cell) for cell in header.split("\t")]
        records = [_record(columns, line) for line in lines]
        if len(records) != int(found["records"]):
            raise ValueError("records are missing")
    except (ValueError, StopIteration) as error:
        raise InputError(f"not a table: {error}") from error
    if not found["path"]:
        return cast(Json, records)
    rest: JsonObject = json.loads(found["rest"] or "{}")
    _put(rest, _names(found["path"]), cast(Json, records))
    return rest


def _title_of(words: _Words) -> re.Pattern[str]:
    def form(text: str) -> str:
        return re.sub(r"\\\{(\w+)\\\}", lambda field: f"(?P<{field[1]}>{FIELDS[field[1]]})", re.escape(text))

    optional = (f"(?:{form(text)})?" for text in (words.blank, words.same, words.beside))
    return re.compile(rf"\[{form(words.title)}(?:{form(words.at)})?{form(words.split)}{''.join(optional)}\]")


FIELDS = {"records": r"\d+", "path": PATH, "rest": r"\{.*\}"}
TITLES = tuple(map(_title_of, WORDS.values()))


def _column(cell: str) -> tuple[Path, str | None]:
    """Return the path of a column, and its cell if that is the same in all records."""
    column = COLUMN.fullmatch(cell)
    if column is None:
        raise ValueError(f"{cell!r} is not the name of a field")
    return _names(column[1]), column[2]


def _names(dotted: str) -> Path:
    return tuple(str(_value(name)) if name[0] == '"' else name for name in NAMES.findall(dotted))


def _record(columns: Sequence[tuple[Path, str | None]], line: str) -> JsonObject:
    varying = [path for path, same in columns if same is None]
    cells = line.split("\t") if varying else []
    record: JsonObject = {}
    for path, cell in zip(varying, cells, strict=True):
        if cell:
            _put(record, path, _value(cell))
    for path, same in columns:
        if same is not None:
            _put(record, path, _value(same))
    return record


def _put(fields: JsonObject, path: Path, value: Json) -> None:
    for key in path[:-1]:
        fields = cast(JsonObject, fields.setdefault(key, {}))
    fields[path[-1]] = value


def _value(cell: str) -> Json:
    if cell in LITERALS:
        return LITERALS[cell]
    if cell[0] in '"[{' or NUMBER.fullmatch(cell):
        return cast(Json, json.loads(cell))
    return cell
