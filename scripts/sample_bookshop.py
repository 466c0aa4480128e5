"""The invented bookshop of the sample conversation: its books, logs, tables and one picture.

Owns the long answers of the tools (`ANSWERS`), all computed: the same bytes on every machine and Python. The dialogue
is elsewhere; `make_sample.py` combines both.
"""

import base64
import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

__all__ = ["ANSWERS", "picture"]

BOOK_LIST = Path(__file__).parent / "sample" / "books.tsv"


@dataclass(frozen=True)
class Book:
    """An invented book. Amounts are fen."""

    isbn: str
    title: str
    subtitle: str
    writer: str
    list_fen: int
    consignment: bool
    blurb: str

    @property
    def member(self) -> int:
        """The price with twelve per cent off, rounded to the fen (halves up)."""
        return (self.list_fen * 88 + 50) // 100

    @property
    def to_yuan(self) -> int:
        """The member price under the first rule."""
        return (self.member + 50) // 100 * 100

    @property
    def to_jiao(self) -> int:
        """The member price under the final rule."""
        return self.member if self.consignment else self.list_fen * 88 // 1000 * 10


def isbn_of(number: int) -> str:
    stem = f"97879991{number:04d}"
    weighted = sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(stem))
    return f"{stem}{-weighted % 10}"


def read_books() -> tuple[Book, ...]:
    books = []
    for number, line in enumerate(BOOK_LIST.read_text(encoding="utf-8").splitlines(), 1):
        title, subtitle, writer, price, owner, blurb = line.split("\t")
        books.append(Book(isbn_of(number), title, subtitle, writer, int(price.replace(".", "")), owner == "own", blurb))
    return tuple(books)


BOOKS = read_books()


def yuan(fen: int) -> str:
    return f"{fen // 100}.{fen % 100:02d}"


class Dice:
    """Seeded choices that are the same in every Python version: only `Random.random` guarantees that."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def below(self, limit: int) -> int:
        return int(self._random.random() * limit)

    def pick(self, items: tuple[Any, ...]) -> Any:
        return items[self.below(len(items))]


def columns(text: str) -> int:
    """Return the width of a text in a terminal: Chinese characters take two columns."""
    return sum(2 if sign >= "\u2e80" else 1 for sign in text)


def table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    """Return rows formatted as in psql."""
    cells = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(columns(row[place]) for row in cells) for place in range(len(head))]
    lines = [
        " | ".join(cell + " " * (width - columns(cell)) for cell, width in zip(row, widths, strict=True))
        for row in cells
    ]
    rule = "-+-".join("-" * width for width in widths)
    return "\n".join([lines[0].rstrip(), rule, *(line.rstrip() for line in lines[1:]), f"({len(rows)} rows)"])


# --- answers of the tools ------------------------------------------------------------------------

SHOPS = {"harbour": "港口街店", "oldmill": "老磨坊店", "unigate": "校门口店", "riverside": "河畔店"}
#: shop, book, copies that the van took, copies set aside for customers, shop that the van went to
OVERDRAWN = (
    ("riverside", 2, 6, 3, "unigate"),
    ("oldmill", 1, 4, 2, "unigate"),
    ("oldmill", 7, 2, 1, "harbour"),
    ("harbour", 5, 3, 1, "riverside"),
    ("riverside", 19, 5, 1, "oldmill"),
)


def negative_stock(shops: tuple[str, ...] = tuple(SHOPS)) -> str:
    rows = []
    for shop, number, taken, aside, target in OVERDRAWN:
        if shop not in shops:
            continue
        book, day = BOOKS[number - 1], 3 + number % 4
        moves = [("delivery", taken, "van"), ("reserve", aside, "web"), ("transfer_out", -taken, f"van to {target}")]
        rows.append(
            {
                "shop": shop,
                "shop_name": SHOPS[shop],
                "isbn": book.isbn,
                "title": book.title,
                "subtitle": book.subtitle,
                "on_hand": -aside,
                "reserved": 0,
                "last_moves": [
                    {"at": f"2026-03-{day + place:02d}T{9 + place * 3:02d}:10:00+08:00", "reason": reason, "copies": n}
                    | {"by": by}
                    for place, (reason, n, by) in enumerate([*moves, ("hand_over", -aside, "counter")])
                ],
            }
        )
    return json.dumps({"negative": rows, "count": len(rows)}, ensure_ascii=False, indent=2)


def prices_to_yuan() -> str:
    rows: list[tuple[Any, ...]] = [
        (
            book.title,
            yuan(book.list_fen),
            yuan(book.member),
            yuan(book.to_yuan),
            f"{(book.to_yuan - book.member) / 100:+.2f}",
        )
        for book in BOOKS
    ]
    return table(("title", "list", "member", "to_yuan", "diff"), rows)


FIRST_LINE = 400  # line number where the excerpt of the supplier's feed begins
BAD_DIGIT = (9, 16, 21)
GARBLED = (4, 14)


def garbled(text: str) -> str:
    """Return Chinese text in the national encoding, read as if it were UTF-8."""
    return text.encode("gb18030").decode("utf-8", errors="replace")


def feed() -> str:
    """Return part of the supplier's feed: three wrong check digits, two lines in another encoding."""
    dice, rows = Dice(7), []
    for number, book in enumerate(BOOKS[:22], 1):
        isbn = book.isbn[:-1] + str((int(book.isbn[-1]) + 4) % 10) if number in BAD_DIGIT else book.isbn
        shown = garbled if number in GARBLED else str
        rows.append(
            {
                "line": FIRST_LINE + number - 1,
                "isbn": f"{isbn[:3]}-{isbn[3]}-{isbn[4:8]}-{isbn[8:12]}-{isbn[12]}",
                "title": shown(book.title),
                "subtitle": book.subtitle,
                "writer": shown(book.writer),
                "list_price": yuan(book.list_fen),
                "stock": 10 + dice.below(90),
                "blurb": shown(book.blurb),
                "updated": f"2026-03-0{1 + dice.below(9)}",
            }
        )
    return json.dumps({"lines": "400-421", "of": 918, "titles": rows}, ensure_ascii=False, indent=1)


def import_log() -> str:
    """Return the log of a nightly import: colours, a progress bar that overwrites itself, a warning many times."""
    stamp = "\x1b[2m2026-03-10 02:0{}\x1b[0m"
    warn, info, error = "\x1b[33mWARN \x1b[0m", "\x1b[32mINFO \x1b[0m", "\x1b[31mERROR\x1b[0m"
    lines = [f"{stamp.format('0:00')} {info} lantern.feed: fetching https://feed.papercrane.example.com/v2/titles"]
    lines += [f"{stamp.format('0:31')} {warn} lantern.http: read timed out, trying again"] * 12
    lines.append(
        f"{stamp.format('4:02')} {info} lantern.feed: 1 318 204 bytes, content-type application/x-ndjson; charset=utf-8"
    )
    lines.append(f"{stamp.format('4:02')} {warn} lantern.feed: feed: not UTF-8 at byte 581117")
    bar = [f"importing {'█' * (done // 5):<20} {done:3d} %  {918 * done // 100:3d}/918" for done in range(0, 101, 4)]
    lines.append("\r".join(bar))
    for number in BAD_DIGIT:
        book = BOOKS[number - 1]
        digit = (int(book.isbn[-1]) + 4) % 10
        lines.append(
            f"{stamp.format('4:09')} {warn} lantern.feed: line {FIRST_LINE + number - 1}: "
            f"ISBN {book.isbn[:-1]}{digit} has a wrong check digit"
        )
    lines += [f"{stamp.format('4:10')} {warn} lantern.web: title contains U+FFFD, page not refreshed"] * 9
    lines.append(f"{stamp.format('4:11')} {info} lantern.feed: feed done: 918 seen, 915 stored, 4 problems")
    lines.append(f"{stamp.format('4:11')} {error} lantern.jobs: nightly-import finished with problems, exit status 3")
    return "\n".join(lines)


def api_log() -> str:
    dice, lines = Dice(11), []
    words = ("海", "灯", "雾港", "fog", "harbour", "茶", "邮", "train", "海边的")
    for number in range(30):
        at = f"2026-03-10T17:{4 + number // 3:02d}:{number % 3 * 19 + dice.below(15):02d}"
        word = dice.pick(words)
        chinese = not word.isascii()
        took = 2900 + dice.below(1700) if chinese else 1400 + dice.below(900)
        lines.append(f"{at} \x1b[36mGET\x1b[0m /search?q={word} 200 \x1b[{31 if chinese else 33}m{took} ms\x1b[0m")
        if chinese:
            lines.append(f"{at} \x1b[33mslow query\x1b[0m search.by_title rows_read=48211 {took - 20} ms")
        if number % 4 == 3:
            lines.append(f"{at} \x1b[36mGET\x1b[0m /health 200 \x1b[32m1 ms\x1b[0m")
    return "\n".join(lines)


@dataclass(frozen=True)
class Order:
    """A receipt of the trial at Harbour Street."""

    id: str
    at: str
    till: int
    book: Book
    copies: int

    @property
    def paid(self) -> int:
        return self.book.to_yuan * self.copies

    @property
    def right(self) -> int:
        return self.book.to_jiao * self.copies


def trial_orders() -> list[Order]:
    dice, orders = Dice(3), []
    for number in range(29):
        minute = 16 * 60 + number * 19 + dice.below(12)
        day, minute = (10, minute) if minute < 21 * 60 + 30 else (11, minute - 12 * 60 - 20)
        at = f"2026-03-{day} {minute // 60:02d}:{minute % 60:02d}"
        orders.append(
            Order(f"H-{20391 + number}", at, 1 + dice.below(3), dice.pick(BOOKS[:28]), 1 + dice.below(4) // 3)
        )
    return orders


def till_log() -> str:
    lines = []
    for order in trial_orders():
        shown = (
            f"{order.copies} x 《{order.book.title}》 member {yuan(order.book.member)} -> {yuan(order.book.to_yuan)}"
        )
        lines.append(f"{order.at} till-{order.till} \x1b[32msale\x1b[0m {order.id} {shown} paid {yuan(order.paid)}")
        lines.append(f"{order.at} till-{order.till} \x1b[2mprinter ready, drawer closed\x1b[0m")
    return "\n".join(lines)


def overcharged() -> str:
    rows: list[tuple[Any, ...]] = [
        (order.id, order.at, order.book.title, order.copies, order.paid, order.right, order.paid - order.right)
        for order in trial_orders()
        if order.paid > order.right
    ]
    return table(("id", "paid_at", "title", "copies", "paid_fen", "right_fen", "over_fen"), rows)


def adjust_dry_run() -> str:
    over = [order for order in trial_orders() if order.paid > order.right]
    lines = [f"{order.id} -¥{yuan(order.paid - order.right)} LB-133 \x1b[33m(dry run)\x1b[0m" for order in over]
    back = sum(order.paid - order.right for order in over)
    return "\n".join([*lines, f"{len(over)} orders, ¥{yuan(back)} to give back, nothing booked"])


def deploy_log() -> str:
    stamp, good = "\x1b[2m2026-03-12 21:{}\x1b[0m", "\x1b[32mok\x1b[0m"
    bar = [f"0042_title_grams {rows:6d}/48211 books" for rows in range(0, 48211, 4018)] + [
        "0042_title_grams  48211/48211 books"
    ]
    lines = [f"{stamp.format('34:10')} migrate: 0042_title_grams (additive)", "\r".join(bar)]
    lines.append(f"{stamp.format('34:51')} migrate: {good}, 41 s, 1 204 377 grams")
    lines += [f"{stamp.format(f'3{5 + place}:20')} restart {shop} {good}" for place, shop in enumerate(SHOPS)]
    lines.append(f"{stamp.format('41:03')} adjust_trial_orders --book: 19 booked, 0 left out {good}")
    lines += [f"{stamp.format('45:00')} health: harbour oldmill unigate riverside web {good}"] * 14
    return "\n".join(lines)


def search_sea() -> str:
    found = sorted((book for book in BOOKS if "海" in book.title), key=lambda book: book.title)
    dice = Dice(5)
    rows = [
        {"isbn": book.isbn, "title": book.title, "subtitle": book.subtitle, "list_price": yuan(book.list_fen)}
        | {"stock": {shop: dice.below(9) for shop in SHOPS}, "blurb": book.blurb}
        for book in found
    ]
    return json.dumps({"q": "海", "took_ms": 37, "count": len(rows), "hits": rows}, ensure_ascii=False, indent=1)


ANSWERS: dict[str, Callable[[], str]] = {
    "adjust-dry-run": adjust_dry_run,
    "api-log": api_log,
    "deploy-log": deploy_log,
    "feed": feed,
    "import-log": import_log,
    "negative-after": lambda: negative_stock(("riverside",)),
    "negative-stock": negative_stock,
    "overcharged": overcharged,
    "prices-to-yuan": prices_to_yuan,
    "search-sea": search_sea,
    "till-log": till_log,
}


def picture() -> str:
    """Return a shelf label as a PNG data URL: a title that runs over the edge, a price, a barcode.

    The PNG is stored without compression, because compressors differ from machine to machine.
    """
    width, height = 96, 48
    dark = [[False] * width for _ in range(height)]
    for x in range(6, width):  # the title has no right margin: that is the user's complaint
        for y in range(5, 13):
            dark[y][x] = (x // 2 + y // 3) % 3 != 0 and x % 12 > 2
    for x in range(6, 46):
        for y in range(17, 29):
            dark[y][x] = x % 10 > 3 and (y in (17, 22, 28) or x % 10 in (4, 9))
    for x in range(6, 86):
        for y in range(27, 44):  # bars that touch the price
            dark[y][x] = dark[y][x] or (x * x // 7 + x) % 5 < 2
    rows = b"".join(b"\0" + _packed(row) for row in dark)
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 0)), (b"IEND", b""))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in chunks)
    return "data:image/png;base64," + base64.b64encode(png).decode()


def _packed(row: list[bool]) -> bytes:
    bits = "".join("0" if dark else "1" for dark in row)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
