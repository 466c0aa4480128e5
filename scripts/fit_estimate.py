"""Fits the weights of `everlong.tokens.estimates` to texts, and shows their error on other texts.

    python scripts/fit_estimate.py CORPUS_DIR [--write] [--earlier FILE]

CORPUS_DIR/<class>/fit/*.txt is for learning, CORPUS_DIR/<class>/held/*.txt only for measuring. One file is
one source; form feeds separate its messages, and messages of more than 8 000 characters are cut. Needs numpy.
`--write` replaces the shipped weights. The vocabulary `claude` has no public tokenizer: its counts are those of
o200k times a ratio, which comes from the n-gram weights in the `--earlier` file; without that file the shipped
weights of `claude` stay.

Sources of the shipped weights, learned | measured. None of their text is in the repository; texts that are free
only for research were never learned from.
- english, chat: Claude Code sessions, Debian reference, manual pages | pi, tau-bench and SWE-agent
  sessions, LoCoMo (measured only), Debian FAQ
- python: standard library | mypy, hypothesis, rich, pygments, pytest, pip, setuptools, TRAIL
- code, shell, json: Claude Code sessions, C headers, Perl, jq, gson, mini-redis, Vue, litellm's model table | pi,
  SWE-agent, OpenHands and tau-bench sessions, JavaScript, vim, CMake, models.dev, JSON of a Debian system, generated
- logs: Claude Code sessions, jtreg, apt, generated formats | dpkg, gdb tests, one other generated format, and the 16
  systems of Loghub (measured only)
- chinese: CrossWOZ, MemoryBank, LibreOffice help, Debian reference and FAQ, gettext catalogues, Vue and
  Nacos documentation, ChatGLM's readme | MADial-Bench, manual pages, React documentation
- japanese, korean: LibreOffice help, Debian reference and policy, gettext catalogues, Vue documentation |
  manual pages, Debian FAQ and developer's reference, aptitude, other catalogues, React documentation
- mixed: Debian reference, Vue documentation, interleaved | maintainers' guide, manual pages, React documentation,
  interleaved from the measured sources of the others
- languages, markup, base64: gettext catalogues of 28 languages, HTML, XML, files of a Debian system, split by file
"""

import argparse
import base64
import json
import math
import random
import string
import time
import uuid
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np  # type: ignore[import-not-found,unused-ignore]

from everlong.tokens import (
    CLASSES,
    ESTIMATED,
    REPEATABLE,
    STEPS,
    class_codes,
    count_exact,
    estimate,
    run_tokens,
    shorten_runs,
)

WEIGHTS = Path(__file__).parents[1] / "src/everlong/tokens/weights.json"
SHORTEST, LONGEST = 100, 8_000  # characters per message
COUNTED = tuple(name for name in ESTIMATED if name != "claude")
JUNK_SHARE = 0.1  # of the weight of a corpus class
JUNK_MESSAGES = 150
ROUNDS = 400  # the loss stops changing after about 300
PULL = 3e-6  # towards the mean chance of the same kinds of bytes; matters only for rare pairs

Array = Any  # the type checker runs without numpy

#: Coarser than the classes: a rare pair behaves like its kind.
KINDS: tuple[bytes, ...] = (
    *(b"aeiou", b"bcdfghlmnprsty", b"jkqvwxz", b"AEIOU", b"BCDFGHLMNPRSTY", b"JKQVWXZ", b"0123456789"),
    *(
        b".,:;!?",
        b"_-/\\",
        b"'\"`([{<)]}>",
        b"=+*&|^~#@$%",
        b" ",
        b"\n\r\t",
        bytes({*range(0x20), 0x7F} - {*b"\n\t\r"}),
    ),
    *(bytes(range(0x80, 0xC0)), bytes(range(0xC0, 0xCE)), bytes(range(0xCE, 0xE0)), b"\xe0\xe1\xe2", b"\xe3"),
    *(bytes(range(0xE4, 0xEA)), bytes(range(0xEA, 0xEE)), b"\xee\xef", bytes(range(0xF0, 0x100))),
)


@dataclass(frozen=True, slots=True)
class Message:
    """One text with its class and its source; `held`: only measured, not learned from."""

    kind: str
    source: str
    held: bool
    text: str


# Generated texts that no person writes but tools print: the estimate must be right there too.


def _of(alphabet: Sequence[str]) -> Callable[[random.Random, int], str]:
    return lambda dice, size: "".join(dice.choices(alphabet, k=size))


def _encoded(dice: random.Random, size: int) -> str:
    plain = base64.b64encode(dice.randbytes(size * 3 // 4 + 1)).decode()
    lines = "\n".join(plain[at : at + 76] for at in range(0, len(plain), 76))
    return dice.choice((plain, lines, plain.translate(str.maketrans("+/", "-_")), f"data:image/png;base64,{plain}"))


def _hex(dice: random.Random, size: int) -> str:
    raw = dice.randbytes(size // 2 + 1)
    hashes = "\n".join(dice.randbytes(20).hex() for _ in range(size // 41 + 1))
    return dice.choice((raw.hex(), raw.hex().upper(), raw.hex(" "), hashes))


def _digits(dice: random.Random, size: int) -> str:
    numbers = [str(int(10 ** (dice.random() * 9))) for _ in range(size // 6 + 1)]
    floats = [f"{dice.gauss(0, 9):.6f}" for _ in range(size // 9 + 1)]
    joined = (" ".join(numbers), ",".join(numbers), "\n".join(floats), "\t".join(floats))
    return dice.choice(("".join(dice.choices(string.digits, k=size)), *joined))


def _uuids(dice: random.Random, size: int) -> str:
    several = (str(uuid.UUID(int=dice.getrandbits(128), version=4)) for _ in range(size // 37 + 1))
    return dice.choice(("\n", ", ", " ")).join(several)


def _nonwords(dice: random.Random, size: int) -> str:
    letters = dice.choice((string.ascii_lowercase, string.ascii_uppercase, string.ascii_letters))
    return " ".join("".join(dice.choices(letters, k=dice.randint(2, 12))) for _ in range(size // 8 + 1))


def _dense_json(dice: random.Random, size: int) -> str:
    rows = [[dice.randrange(10**6), round(dice.random(), 4), None, dice.choice("xyz")] for _ in range(size // 22 + 1)]
    return json.dumps(rows, separators=(",", ":"))


def _faces(dice: random.Random, size: int) -> str:
    between = dice.choice(("", " ", " ok ", ", and then ", "\n- ", " 好的"))
    return between.join(dice.choices(FACES, k=size // (len(between) + 1) + 1))


FACES = [chr(code) for code in range(0x1F600, 0x1F650)] + list("🎉🚀✅❌🔥👍💡📦🐛⚠✨🙏❤")
FLAGS = [chr(code) for code in range(0x1F1E6, 0x1F200)]
PICTURES = [chr(code) for code in range(0x1F300, 0x1F700)]

JUNK: Mapping[str, Callable[[random.Random, int], str]] = {
    "~base64": _encoded,
    "~hex": _hex,
    "~digits": _digits,
    "~uuids": _uuids,
    "~nonwords": _nonwords,
    "~dense json": _dense_json,
    "~small letters": _of(string.ascii_lowercase),
    "~capitals": _of(string.ascii_uppercase),
    "~letters": _of(string.ascii_letters),
    "~letters, digits": _of(string.ascii_letters + string.digits),
    "~printable": _of(string.printable[:95]),
    "~punctuation": _of(string.punctuation),
    "~latin-1": _of([chr(code) for code in range(0x100)]),
    "~faces": _faces,
    "~pictures": _of(PICTURES + FLAGS),
}


def junk() -> Iterator[Message]:
    """Yield generated messages; those that are only measured have another random seed."""
    for kind, make in JUNK.items():
        for held in (False, True):
            dice = random.Random(f"{kind} {held}")
            for _ in range(JUNK_MESSAGES):
                size = int(SHORTEST * (LONGEST / SHORTEST) ** dice.random())
                yield Message(kind, "dice", held, make(dice, size))


def corpus(root: Path) -> Iterator[Message]:
    """Yield the messages of a folder with the layout that this script's first lines describe."""
    for path in sorted(root.glob("*/*/*.txt")):
        if path.parent.name not in ("fit", "held"):
            continue
        dice = random.Random(path.stem)
        for text in path.read_bytes().decode().split("\f"):
            for message in cut(text, dice):
                yield Message(path.parts[-3], path.stem, path.parent.name == "held", message)


def cut(text: str, dice: random.Random) -> Iterator[str]:
    """Yield a text as messages; a long text in pieces of random length."""
    at = 0
    while at < len(text):
        size = len(text) if len(text) <= LONGEST else int(SHORTEST * (LONGEST / SHORTEST) ** dice.random())
        if len(text[at : at + size]) >= SHORTEST:
            yield text[at : at + size]
        at += size


class PairCounts:
    """How often each pair of classes occurs in each message: a sparse matrix of messages by pairs."""

    def __init__(self, texts: Sequence[str]) -> None:
        found = [self._pairs(text) for text in texts]
        self.columns = np.concatenate([columns for columns, _ in found])
        self.counts = np.concatenate([counts for _, counts in found]).astype(np.float64)
        self.lengths = np.array([len(columns) for columns, _ in found])
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])

    @staticmethod
    def _pairs(text: str) -> tuple[Array, Array]:
        codes = np.frombuffer(class_codes(shorten_runs(text)[0]), np.uint8).astype(np.int64)
        found: tuple[Array, Array] = np.unique(codes[:-1] * len(CLASSES) + codes[1:], return_counts=True)
        return found

    def times(self, chances: Array) -> Array:
        """Return the expected number of token ends in each message."""
        return np.add.reduceat(self.counts * chances[self.columns], self.starts)

    def spread(self, rows: Array) -> Array:
        """Return the transposed product: the messages' values, summed for each pair."""
        weighted = self.counts * np.repeat(rows, self.lengths)
        return np.bincount(self.columns, weighted, len(CLASSES) ** 2)


def kinds_of_pairs() -> Array:
    """Return, for each pair of classes, the number of its pair of kinds."""
    of_class = [next(at for at, kind in enumerate(KINDS) if members[0] in kind) for members in CLASSES]
    return (np.array(of_class)[:, None] * len(KINDS) + np.array(of_class)[None, :]).ravel()


def fit(pairs: PairCounts, target: Array, real: Array, share: Array) -> Array:
    """Return the chances, each in [0, 1], with the least relative error (accelerated projected gradient)."""
    weight = share / real**2
    kinds = kinds_of_pairs()
    mass = pairs.spread(weight * pairs.times(np.ones(len(kinds))))
    seen = mass > 0
    many = np.bincount(kinds, seen)

    def of_kind(chances: Array) -> Array:
        return np.where(many > 0, np.bincount(kinds, seen * chances) / np.maximum(many, 1), 1)[kinds]

    # Scaling by row sums bounds the curvature by 1 in every direction, so that steps of 1 converge.
    step = seen / np.maximum(mass + 2 * PULL, PULL)
    chances = ahead = np.full(len(kinds), 0.3)
    momentum = 1.0
    for _ in range(ROUNDS):
        slope = pairs.spread(weight * (pairs.times(ahead) - target)) + PULL * (ahead - of_kind(ahead))
        following = np.clip(ahead - step * slope, 0, 1)
        if np.dot(ahead - following, following - chances) > 0:
            momentum = 1.0
        grown = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = following + (momentum - 1) / grown * (following - chances)
        chances, momentum = following, grown
    return np.round(np.where(seen, chances, of_kind(chances)) * STEPS).astype(np.uint8)


def shares(messages: Sequence[Message]) -> Array:
    """Return the weight of each message.

    Classes have equal weight, junk has little, held messages have none; sources weigh by the square root of their size.
    """
    sizes = Counter((message.kind, message.source) for message in messages if not message.held)
    totals: dict[str, float] = {}
    for (kind, _), size in sizes.items():
        totals[kind] = totals.get(kind, 0) + math.sqrt(size)

    def weight(message: Message) -> float:
        if message.held:
            return 0.0
        importance = JUNK_SHARE if message.kind in JUNK else 1.0
        return importance / totals[message.kind] / math.sqrt(sizes[message.kind, message.source])

    each = np.array([weight(message) for message in messages])
    return each / each.sum()


def repeats(vocabulary: str) -> dict[str, str]:
    """Return how many repetitions of a character fill a token -> the characters with that number."""
    found: dict[str, str] = {}
    for character in REPEATABLE:
        many = f"{4_096 / count_exact(vocabulary, character * 4_096):.3g}"
        found[many] = found.get(many, "") + character
    return found


def outside_pairs(messages: Sequence[Message], many: Mapping[str, str]) -> Array:
    """Return the tokens that pairs do not cover: the first one, and those of long runs."""
    of = {character: float(count) for count, characters in many.items() for character in characters}
    return np.array([1 + run_tokens(shorten_runs(message.text)[1], of) for message in messages])


def earlier_estimate(weights: Mapping[str, float], text: str) -> float:
    """Return the previous kind of estimate: counts of n-grams of coarse classes, times weights."""
    table = bytearray(b"." * 128 + b"\x80" * 64 + b"\xd0" * 32 + b"\xe0\xe0\xe2\xe3" + b"\xe4" * 6 + b"\xea" * 4)
    table += b"\xef\xef" + b"\xf0" * 16
    table[0xC0:0xC4] = b"\xc2\xc2\xc2\xc3"
    for sign, members in zip(b"aA0 \n\t", (b"az", b"AZ", b"09", b"  ", b"\n\n", b"\t\t"), strict=True):
        table[members[0] : members[1] + 1] = bytes([sign]) * (members[1] + 1 - members[0])
    classes = text.encode().translate(bytes(table))
    return sum(weight * classes.count(gram.encode("latin-1")) for gram, weight in weights.items())


def claude_counts(messages: Sequence[Message], real: Mapping[str, Array], earlier: Path) -> Array:
    """Return estimated counts for `claude`: o200k times the ratio of the earlier estimates.

    Where that ratio is implausible, cl100k's count is used. On vocabularies that can be counted, the mean was within 4
    %, and 95 of 100 messages were within 4 to 15 %.
    """
    weights = json.loads(earlier.read_text())
    counts = real["cl100k_base"].copy()
    for at, message in enumerate(messages):
        claude, o200k = (earlier_estimate(weights[name], message.text) for name in ("claude_old", "o200k_base"))
        if message.kind not in JUNK and 0.8 <= claude / max(o200k, 1) <= 2:
            counts[at] = real["o200k_base"][at] * claude / o200k
    return counts


def report(messages: Sequence[Message], figures: Mapping[str, tuple[Array, Array]]) -> None:
    """Print, per class and vocabulary, the mean signed error and the 95th percentile of the absolute error, in %.

    Only measured sources count.
    """
    print(f"{'held':18}{'n':>5}  " + "".join(f"{name:>15}" for name in figures))
    for kind in dict.fromkeys(message.kind for message in messages):
        chosen = np.array([message.held and message.kind == kind for message in messages])
        cells = []
        for estimated, real in figures.values():
            error = 100 * (estimated[chosen] / real[chosen] - 1)
            cells.append(f"{error.mean():+8.1f} /{np.quantile(abs(error), 0.95):5.1f}")
        print(f"{kind:18}{chosen.sum():5}  " + "".join(cells))


def speed(messages: Sequence[Message]) -> None:
    """Print the MB of UTF-8 per second of CPU time, per class, with the shipped weights."""
    for kind in dict.fromkeys(message.kind for message in messages):
        texts = [message.text for message in messages if message.held and message.kind == kind]
        started = time.process_time()
        for text in texts:
            estimate(text)
        print(f"{kind:18}{sum(len(t.encode()) for t in texts) / 1e6 / (time.process_time() - started):5.1f} MB/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--write", action="store_true", help="replace the shipped weights")
    parser.add_argument("--earlier", type=Path, help="earlier weights, to derive `claude` from")
    wanted = parser.parse_args()
    messages = [*corpus(wanted.corpus), *junk()]
    pairs = PairCounts([message.text for message in messages])
    real = {name: np.array([float(count_exact(name, m.text)) for m in messages]) for name in COUNTED}
    if wanted.earlier:
        real["claude"] = claude_counts(messages, real, wanted.earlier)
    share = shares(messages)
    written = json.loads(WEIGHTS.read_text("utf-8")) if WEIGHTS.exists() else {}
    figures = {}
    for name, counts in real.items():
        many = repeats(name if name in COUNTED else "cl100k_base")
        outside = outside_pairs(messages, many)
        chances = fit(pairs, counts - outside, counts, share)
        figures[name] = outside + pairs.times(chances / STEPS), counts
        packed = base64.b64encode(zlib.compress(chances.tobytes(), 9)).decode()
        written[name] = {"ends": packed, "repeats": many}
    report(messages, figures)
    if wanted.write:
        WEIGHTS.write_text(json.dumps(written, indent=1, ensure_ascii=True) + "\n", "utf-8")
        print(f"{WEIGHTS.name}: {WEIGHTS.stat().st_size:,} bytes")
    if WEIGHTS.exists():
        speed(messages)


if __name__ == "__main__":
    main()
