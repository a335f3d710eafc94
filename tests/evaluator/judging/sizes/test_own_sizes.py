"""Sizes that stand in a candidate's text as numbers: what is smaller where the problem is."""

from __future__ import annotations

import pytest

from rlkernel.evaluator.judging.sizes.counterparts import counterparts
from rlkernel.evaluator.judging.sizes.own_sizes import OwnSizes, named
from rlkernel.reference_text import shrink

KERNEL = """from __future__ import annotations
import triton, math

@triton.jit
def k(x, N: tl.constexpr = 8192):
    return x + 8192  # 8192

def f(x, n=8192):
    match n:
        case 8192:
            return f"{n:8192}", 8192.0, x.view(-1, 4096)
"""


def test_what_stands_for_several_things_is_the_smallest_or_as_it_is() -> None:
    found = counterparts({}, [((64, 64, 512), (4, 64, 32))])
    assert found[64] == (4, 64)
    assert OwnSizes({"A": 64, "B": 512}, least=False).at(found) == {"B": [512, 32]}
    assert OwnSizes({"A": 64, "B": 512}, least=True).at(found) == {"A": [64, 4], "B": [512, 32]}


def test_numbers_get_names_and_lines_keep_their_numbers() -> None:
    code, numbers = named(KERNEL, {8192: (64,), 4096: (16,)})
    assert numbers == {"_OWN_SIZE_4096": 4096, "_OWN_SIZE_8192": 8192, "_OWN_SIZE_8192K": 8192, "_OWN_SIZE_8192_0": 8192.0}
    lines = code.splitlines()
    assert lines[0].startswith("from __future__ import annotations; _OWN_SIZE_4096 = 4096; ")
    assert "_OWN_SIZE_8192K: 'constexpr' = 8192" in lines[0]
    assert lines[4:6] == ["def k(x, N: tl.constexpr = 8192):", "    return x + _OWN_SIZE_8192K  # 8192"]
    assert lines[7] == "def f(x, n=_OWN_SIZE_8192):"
    assert lines[9:] == [
        "        case 8192:", '            return f"{n:8192}", _OWN_SIZE_8192_0, x.view(-1, _OWN_SIZE_4096)',
    ]  # fmt: skip
    small = shrink(code, OwnSizes(numbers, least=False).at({8192: (64,)}))
    assert small.splitlines()[0].endswith("_OWN_SIZE_8192 = 64; _OWN_SIZE_8192K: 'constexpr' = 64; _OWN_SIZE_8192_0 = 64.0")
    assert small.splitlines()[1:] == lines[1:]


@pytest.mark.parametrize(
    "code",
    [
        "x = (", "class A:\n    n = 8192\n", "n = [8192,\n 64]\nimport torch\n", "import torch\nN = 8192\n",
        "import torch\nn = 8\n", "import torch\nn = 8192if torch else 64\n",
    ],
)  # fmt: skip
def test_texts_without_numbers_of_their_own(code: str) -> None:
    """What does not parse, has no place for names or a number in it, is smaller anyway by its name, has other numbers, or none
    that a name could replace."""
    assert named(code, {8192: (64,)}, kept=("N",)) == (code, {})


def test_arithmetic_is_one_number_unless_one_of_its_numbers_stands_for_something() -> None:
    """4096 stands for rows, and half of 8192 columns do not."""
    text = "import torch\na, b = 1 << 12, 8192 // 2\n"
    code, numbers = named(text, {8192: (512,), 4096: (256,)})
    assert code.splitlines()[1] == "a, b = _OWN_SIZE_4096, _OWN_SIZE_8192 // 2"
    assert numbers == {"_OWN_SIZE_4096": 4096, "_OWN_SIZE_8192": 8192}


def test_parts_of_sizes_keep_their_ratio_in_grids_and_bounds_and_nowhere_else() -> None:
    text = (
        "import torch\n@triton.jit\ndef k(o):\n    return o < 1024, tl.arange(0, 1024)\ngrid = (32, 32)\nk[grid](x, BLOCK=64)\n"
    )
    known = {2048: (256,)}
    code, numbers = named(text, known)
    assert code.splitlines()[3:] == [
        "    return o < _OWN_SIZE_PART_1024K, tl.arange(0, 1024)", "grid = (_OWN_SIZE_GRID_32, _OWN_SIZE_GRID_32)",
        "k[grid](x, BLOCK=64)",
    ]  # fmt: skip
    small = {"_OWN_SIZE_PART_1024K": [1024, 128], "_OWN_SIZE_GRID_32": [32, 4]}
    assert OwnSizes(numbers, least=False).at(known) == small
    ragged = {"_OWN_SIZE_GRID_32": [32, 4]}  # of 200 rows in blocks of 64, of which 1024 have no whole part
    assert OwnSizes(numbers, least=False).at({2048: (201,)}) == ragged


def test_what_is_as_it_is_at_the_first_sizes_has_a_name_for_others() -> None:
    """16 * 32 rows are the 32 of 4096 at the first sizes, and are told from these at larger ones."""
    first = counterparts({}, [((16, 32, 4096), (4, 8, 32))])
    code, numbers = named("import torch\ngrid = 512\n", first)
    assert (first[512], numbers) == ((512,), {"_OWN_SIZE_512": 512})
    assert code == "import torch; _OWN_SIZE_512 = 512\ngrid = _OWN_SIZE_512\n"
    own = OwnSizes(numbers, least=False)
    assert own.at(first) == {}
    assert own.at(counterparts({}, [((16, 32, 4096), (4, 8, 128))])) == {"_OWN_SIZE_512": [512, 32]}


@pytest.mark.parametrize(
    ("value", "smaller"),
    [
        (0.08838834764831845, 0.25),  # 128 ** -0.5 and 16 ** -0.5
        (0.0078125, 0.0625),  # 1 / 128 and 1 / 16
        (0.088389, 0.25 * 0.088389 * 128**0.5),  # as far off as it was
        (0.0884, None),
        (0.125, None),  # 64 ** -0.5, and nothing has 64
    ],
)
def test_a_number_that_is_made_of_a_size_keeps_its_ratio(value: float, smaller: float | None) -> None:
    known = counterparts({}, [((128,), (16,))])
    code, numbers = named(f"import torch\nscale = {value!r}\n", known)
    made = OwnSizes(numbers, least=False).at(known)
    assert [small for _, (_, small) in made.items()] == ([] if smaller is None else [pytest.approx(smaller)])
    assert (code == f"import torch\nscale = {value!r}\n") == (smaller is None)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s * (0.25 / 2)", {"_OWN_SIZE_MADE_0_125": 0.125}),  # 64 ** -0.5
        ("s / 8", {"_OWN_SIZE_MADE_8_0": 8.0}),
        ("s // 8", {}),
        ("s * 8", {}),
        ("(0.25 / 2) / s", {"_OWN_SIZE_MADE_0_125": 0.125}),
        (f"s * ({10**400} * 0.5)", {}),
        (f"s / {10**400}", {}),
    ],
)
def test_what_is_made_of_a_size_may_be_a_quotient_or_a_divisor(text: str, found: dict[str, float]) -> None:
    """A whole number is one only as a divisor: elsewhere 8 is much else."""
    assert named(f"import torch\ny = {text}\n", {64: (16,)})[1] == found


def test_a_number_that_may_be_made_of_a_size_may_be_another_one() -> None:
    """A slope of 0.01 beside 100 rows: one way to look at the text leaves it as it is."""
    code, known = "import torch\nrows, slope = 100, 0.01\n", {100: (25,)}
    numbers = named(code, known)[1]
    assert OwnSizes(numbers, least=True).at(known) == {"_OWN_SIZE_100": [100, 25], "_OWN_SIZE_MADE_0_01": [0.01, 0.04]}
    assert OwnSizes(numbers, least=True, made=False).at(known) == {"_OWN_SIZE_100": [100, 25]}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s / 8", {"_OWN_SIZE_MADE_8_0": 8.0}),
        ("s / 8.0", {"_OWN_SIZE_MADE_8_0": 8.0}),
        ("s * (1.0 / 8.0)", {"_OWN_SIZE_MADE_0_125": 0.125}),
        ("s * 8", {"_OWN_SIZE_8": 8}),
        ("s * (1 / 64)", {"_OWN_SIZE_64": 64}),
        ("s / 64", {"_OWN_SIZE_64": 64}),
    ],
)
def test_what_divides_may_be_made_of_channels_where_as_many_heads_are(text: str, found: dict[str, float]) -> None:
    """8 is the root of 64 channels, and there are 8 heads: whether it is meant so or so, one way to look at the text is right."""
    known = {64: (16,), 8: (8,)}
    assert named(f"import torch\ny = {text}\n", known)[1] == found
    if "_OWN_SIZE_MADE_8_0" in found:
        fewer = {64: (16,), 8: (2,)}
        assert OwnSizes(found, least=True).at(fewer) == {"_OWN_SIZE_MADE_8_0": [8.0, 4.0]}
        assert OwnSizes(found, least=True, made=False).at(fewer) == {"_OWN_SIZE_MADE_8_0": [8.0, 2.0]}
