"""The table of public data sets: the name of each, where to get it, its licence, and its converter.

A name here is the name of a folder in the data folder. To add a data set, add a row, and its description in the words
of the command line.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from everlong.errors import InputError
from everlong.lab.datasets.assistant_words import make_assistant_words
from everlong.lab.datasets.beam import convert_beam
from everlong.lab.datasets.checkout import Checkout
from everlong.lab.datasets.companions import convert_madial, convert_memorybank
from everlong.lab.datasets.dialogue import CONVERSATIONS, Dataset, read_dataset
from everlong.lab.datasets.locomo import convert_locomo, convert_locomo_plus, convert_locomo_rest, convert_realtalk
from everlong.lab.datasets.longmemeval import convert_longmemeval
from everlong.lab.datasets.meetings import convert_qmsum, convert_vcsum
from everlong.lab.datasets.realmem import convert_realmem

__all__ = ["DATASETS", "DatasetRow", "convert_dataset"]

BEAM = "https://github.com/mohammadtavakoli78/BEAM"
LOCOMO = "https://github.com/snap-research/locomo"
LOCOMO_PLUS = "https://github.com/xjtuleeyf/Locomo-Plus"
REALMEM = "https://github.com/AvatarMemory/RealMemBench"
REALTALK = "https://github.com/danny911kr/REALTALK"
QMSUM = "https://github.com/Yale-LILY/QMSum"
VCSUM = "https://github.com/hahahawu/VCSum"
MEMORYBANK = "https://github.com/zhongwanjun/MemoryBank-SiliconFriend"
MADIAL = "https://github.com/hejunqing/MADial-Bench"
LONGMEMEVAL = "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned"

MIT, APACHE, SHARE_ALIKE, NOT_COMMERCIAL = "MIT", "Apache-2.0", "CC BY-SA 4.0", "CC BY-NC 4.0"
UNSTATED = "none stated"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRow:
    """One public data set. `address` can be cloned; a data set that is made from another one names it in `made_from`.

    `megabytes` is the size of the written files, `language` a code such as "zh".
    """

    name: str
    language: str
    licence: str
    dialogues: int
    questions: int
    megabytes: int
    convert: Callable[[Checkout], Dataset]
    address: str = ""
    made_from: str = ""

    @property
    def folder(self) -> str:
        """The folder that `git clone` creates."""
        return self.address.rpartition("/")[2]


def _assistant_words(checkout: Checkout) -> Dataset:
    return make_assistant_words(read_dataset(checkout.folder))


def _row(
    name: str,
    language: str,
    licence: str,
    address: str,
    size: tuple[int, int, int],
    convert: Callable[[Checkout], Dataset],
) -> DatasetRow:
    dialogues, questions, megabytes = size
    return DatasetRow(
        name=name,
        language=language,
        licence=licence,
        dialogues=dialogues,
        questions=questions,
        megabytes=megabytes,
        convert=convert,
        address=address,
    )


DATASETS: dict[str, DatasetRow] = {
    row.name: row
    for row in (
        _row("beam_100k", "en", SHARE_ALIKE, BEAM, (20, 355, 13), partial(convert_beam, size="100K")),
        _row("beam_500k", "en", SHARE_ALIKE, BEAM, (35, 629, 78), partial(convert_beam, size="500K")),
        DatasetRow(
            name="assistant_words",
            language="en",
            licence=SHARE_ALIKE,
            dialogues=20,
            questions=200,
            megabytes=13,
            convert=_assistant_words,
            made_from="beam_100k",
        ),
        _row("realmem", "en", APACHE, REALMEM, (10, 436, 13), convert_realmem),
        _row("longmemeval", "en", MIT, LONGMEMEVAL, (470, 470, 270), convert_longmemeval),
        _row("locomo", "en", NOT_COMMERCIAL, LOCOMO, (6, 1_194, 2), convert_locomo),
        _row("locomo_rest", "en", NOT_COMMERCIAL, LOCOMO, (4, 788, 1), convert_locomo_rest),
        _row(
            "locomo_plus", "en", f"{UNSTATED}; LoCoMo: {NOT_COMMERCIAL}", LOCOMO_PLUS, (10, 401, 2), convert_locomo_plus
        ),
        _row("realtalk", "en", UNSTATED, REALTALK, (10, 705, 2), convert_realtalk),
        _row("qmsum", "en", MIT, QMSUM, (70, 481, 6), convert_qmsum),
        _row("memorybank", "en", MIT, MEMORYBANK, (10, 69, 1), partial(convert_memorybank, code="en", language="en")),
        _row(
            "zh_memorybank", "zh", MIT, MEMORYBANK, (10, 70, 1), partial(convert_memorybank, code="cn", language="zh")
        ),
        _row("madial", "en", MIT, MADIAL, (2, 160, 1), partial(convert_madial, folder="en", code="en")),
        _row("zh_madial", "zh", MIT, MADIAL, (2, 107, 1), partial(convert_madial, folder="ch", code="zh", apart=False)),
        _row(
            "zh_madial_rest", "zh", MIT, MADIAL, (2, 53, 1), partial(convert_madial, folder="ch", code="zh", apart=True)
        ),
        _row("zh_vcsum", "zh", MIT, VCSUM, (48, 271, 3), convert_vcsum),
    )
}


def convert_dataset(name: str, folder: Path) -> Dataset:
    """Return the data set of that name from the folder into which it was cloned.

    Any other name is your own data set: its folder is in the lab's format, and is checked. Raises InputError.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; --from needs the folder that contains {name}")
    row = DATASETS.get(name)
    if row is not None:
        return row.convert(Checkout(folder, row.address))
    if not any((folder / file).is_file() for file in (CONVERSATIONS, f"{CONVERSATIONS}.gz")):
        raise InputError(f"{name} is not a public set ({', '.join(DATASETS)}), and {folder} has no {CONVERSATIONS}")
    return read_dataset(folder)
