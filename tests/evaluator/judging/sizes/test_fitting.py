"""Sizes of problems that have no SMALL, in files of KernelBench's layout."""

from __future__ import annotations

import random

import pytest

from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.costs.needs import Need
from rlkernel.evaluator.judging.costs.needs import need as count
from rlkernel.evaluator.judging.sizes import fitting
from rlkernel.evaluator.judging.sizes.constants import counts_of, resize, sizes_of
from rlkernel.evaluator.judging.sizes.fitting import Fitted, Unfit, describe
from rlkernel.evaluator.judging.sizes.resizing import apart, divided, reduced
from rlkernel.reference import load_reference
from rlkernel.reference_text import small_constants, small_of
from rlkernel.types import Problem

HEAD = "import torch\nimport torch.nn as nn\n"
LINEAR = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, features, out):
        super().__init__()
        self.linear = nn.Linear(features, out)
    def forward(self, x):
        return torch.relu(self.linear(x))
batch, features = 1024, 8192
out = 64 * 32
def get_inputs():
    return [torch.rand(batch, features)]
def get_init_inputs():
    return [features, out]
"""
)
# Normalised over a shape that is tied to the input's by hand: sizes cannot be halved one like the other.
TIED = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.norm = nn.LayerNorm(shape)
    def forward(self, x):
        return self.norm(x)
batch = 4096
height = width = 48
shape = (48, 48)
channels = 3
def get_inputs():
    return [torch.rand(batch, channels, 48, 48)]
def get_init_inputs():
    return [shape]
"""
)
LITERAL = (
    HEAD
    + """
class Model(nn.Module):
    def forward(self, x):
        return x + 1
def get_inputs():
    return [torch.rand(4096, 4096)]
def get_init_inputs():
    return []
"""
)
RECURRENT = (
    HEAD
    + """
class Model(nn.Module):
    def forward(self, x):
        state = torch.zeros_like(x[0])
        for step in range(x.shape[0]):
            state = torch.tanh(state + x[step])
        return state
length = 4096
width = 64
def get_inputs():
    return [torch.rand(length, width)]
def get_init_inputs():
    return []
"""
)
# A scale for each block of 128: 4 of them are repeated, and a column of 1 would be broadcast along all 512.
BLOCKS = (
    HEAD
    + """
class Model(nn.Module):
    def forward(self, x, s):
        return x * s.repeat_interleave(128, 1)
def get_inputs():
    return [torch.rand(2048, 512), torch.rand(2048, 4)]
def get_init_inputs():
    return []
"""
)
READS = LITERAL.replace("x + 1", "x + x.sum().item()")


def problem(source: str) -> Problem:
    return Problem("level1/x", 1, "train", source)


def fit_for_cpu(problem: Problem) -> Fitted | Unfit:
    return fitting.fit_for_cpu(problem, H200)


def fit_for_gpu(problem: Problem, memory_bytes: int) -> Fitted | Unfit:
    return fitting.fit_for_gpu(problem, H200, memory_bytes)


def need(source: str, name: str) -> Need:
    return count(source, name, H200)


def fitted(found: Fitted | Unfit) -> Fitted:
    assert isinstance(found, Fitted), found.reason
    return found


def test_sizes_are_whole_constants_whose_name_does_not_say_structure() -> None:
    structure = "kernel_size = 9\npadding = 8\nnum_heads = 8\neps = 1e-5\nflag = True\nd = f(3)\n"
    source = structure + "n: int = 50\na = b = 2 ** 10\nc = [32, 4]\n"
    assert sizes_of(source) == {"n": 50, "a": 1024, "b": 1024, "c": [32, 4]}


def test_halving_keeps_divisors() -> None:
    found = reduced({"in": 768, "out": 96, "small": 12, "odd": 370}, 64)
    assert found == {"in": 48, "out": 48, "odd": 46}  # 768/16, 96/2, 370 -> 185 -> 92 -> 46


def test_on_the_cpu_the_shape_stays_and_results_are_compared_at_a_small_one() -> None:
    found = fitted(fit_for_cpu(problem(LINEAR)))
    # At 512, there are 512 x 512 inputs, 2 x 512 x 512 made by the operators: too many. 256, 256 and 256 fit, with 2 x 256^3
    # flops. Apart these are 64, 256 and 128; doubled once they have as many flops, and 128 x 512 + 2 x 128 x 256 elements.
    assert found.whole == {} and found.compared == {"batch": 128, "features": 512, "out": 256}
    full = load_reference(found.problem.source, small=False)
    small = load_reference(found.problem.source, small=True)
    assert full.inputs(0)[0].shape == (1024, 8192) and small.inputs(0)[0].shape == (128, 512)
    assert small.model(0).linear.weight.shape == (256, 512)
    assert small_constants(found.problem.source)["batch"] == [1024, 128]


def test_sizes_that_must_be_equal_at_the_reduced_shape_stay_equal() -> None:
    """`N` is twice `M` at full shape, and the reference takes no other than equal ones below."""
    tied = LINEAR.replace("return ", "assert x.shape[0] in (1024, x.shape[1]); return ", 1)
    assert fitted(fit_for_cpu(problem(tied))).compared == {"batch": 256, "features": 256, "out": 256}


def test_an_axis_of_one_does_not_stand_in_for_a_longer_one() -> None:
    """At 1 column and 1 row the reference runs, and its result is 512 wide all the same: a kernel for blocks would be refused."""
    # 256 rows of 512 and 4 numbers, 512 repeated ones and 512 products: 394,240 of 2^19 elements; 512 rows are too many.
    assert fitted(fit_for_cpu(problem(BLOCKS))).compared == {"SIZE_2048": 256}
    free = BLOCKS.replace("s.repeat_interleave(128, 1)", "s.sum()")
    assert fitted(fit_for_cpu(problem(free))).compared == {"SIZE_2048": 256, "SIZE_512": 128}


def test_one_is_a_size_where_two_would_do() -> None:
    single = LITERAL.replace("4096, 4096", "batch, kernel_size, kernel_size") + "batch = 64\nkernel_size = 400\n"
    assert fitted(fit_for_cpu(problem(single))).compared == {"batch": 1}  # 160,000 numbers twice; of two, 640,000 are too many
    alone = single.replace("return x + 1", "assert len(x) != 2; return x + 1")
    assert fitted(fit_for_cpu(problem(alone))).compared != {"batch": 1}


def test_no_two_reduced_sizes_are_equal_that_differ_at_full_shape() -> None:
    chance = random.Random(0)
    for _ in range(200):
        full = {name: chance.choice((3, 16, 64, 96, 512, 1000, 1024, 4096, 8192)) for name in "abcd"}
        found = full | apart(reduced(full, chance.choice((8, 32, 256))), full)
        pairs = [(one, other) for one in full for other in full if min(found[one], found[other]) > 1]
        assert all((found[one] == found[other]) == (full[one] == full[other]) for one, other in pairs)


def test_a_size_stays_above_a_number_beside_it_that_stays() -> None:
    def compared(queries: int) -> dict[str, int]:
        inputs = f"[torch.rand(2048, {queries}, 128), torch.rand(2048, 4, 128), torch.rand(2048, 1, 64)]"
        source = (
            HEAD
            + """
class Model(nn.Module):
    def forward(self, q, k, cos):
        return [torch.cat([x * cos for x in one.chunk(2, -1)], -1) for one in (q, k)]
"""
            + f"def get_inputs():\n    return {inputs}\ndef get_init_inputs():\n    return []\n"
        )
        found = fitting.fit_for_cpu(Problem("turned", 1, "validation", source), H200)
        assert isinstance(found, Fitted)
        return found.compared

    assert compared(16)["SIZE_16"] == 8, "four heads of keys are fewer at both shapes"
    assert compared(3).keys() == {"SIZE_2048", "SIZE_128", "SIZE_64"}, "three are fewer than four at full shape, too"


def test_what_is_small_or_says_its_sizes_stays_as_it_is() -> None:
    tiny = problem(LINEAR.replace("1024, 8192", "8, 16").replace("64 * 32", "4"))
    assert fit_for_cpu(tiny) == Fitted(tiny, {}, {})
    chosen = problem(LINEAR + "SMALL = {'batch': 3, 'features': 5, 'out': 7}\n")
    assert fit_for_cpu(chosen) == Fitted(chosen, {}, {})


def test_where_sizes_are_tied_those_of_the_inputs_alone_are_reduced() -> None:
    found = fitted(fit_for_cpu(problem(TIED)))
    assert found.compared == {"batch": 32}  # 2 x 32 x 3 x 48 x 48 = 442 368, and the norm's statistics; with 64 too many


def test_where_a_number_of_the_class_keeps_one_size_the_others_are_halved_one_by_one() -> None:
    text = LITERAL.replace("x + 1", "x + torch.zeros(196, 196)").replace("4096, 4096", "1024, 196, 196")
    found = fitted(fit_for_cpu(problem(text)))
    assert found.compared == {"SIZE_1024": 4}


def test_numbers_in_the_functions_become_constants() -> None:
    found = fitted(fit_for_cpu(problem(LITERAL)))
    assert found.compared == {"SIZE_4096": 512}, "512 x 512 inputs and as many results are 2^19"
    assert load_reference(found.problem.source, small=False).inputs(0)[0].shape == (4096, 4096)
    assert load_reference(found.problem.source, small=True).inputs(0)[0].shape == (512, 512)


def test_a_problem_without_a_small_size_is_told() -> None:
    found = fit_for_cpu(problem(LITERAL.replace("return x + 1", "return x + torch.ones(8, 4096, 4096)")))
    assert isinstance(found, Unfit)
    assert found.reason.startswith("level1/x: no size fits; of the least that was tried, ")
    assert describe([found])["unfit"] == {"level1/x": found.reason}


def test_sizes_at_which_an_index_is_out_of_range_are_passed_over() -> None:
    # Rows and tokens are halved until they are below a limit: 768 becomes 384 while 512 stays, and so on.
    lookup = LITERAL.replace("x + 1", "torch.nn.functional.embedding(x, torch.zeros(rows, 4096))").replace(
        "torch.rand(4096, 4096)", "torch.full((64,), tokens - 1)"
    )
    found = fitted(fit_for_cpu(problem(lookup + "rows, tokens = 768, 700\n")))
    assert found.compared["tokens"] <= found.compared.get("rows", 768)


def test_a_file_that_cannot_run_is_told() -> None:
    found = fit_for_cpu(problem(LITERAL.replace("x + 1", "x + missing")))
    assert isinstance(found, Unfit) and "forward raises NameError" in found.reason
    found = fit_for_cpu(problem("import no_such_module\n" + LITERAL))
    assert isinstance(found, Unfit) and "No module named 'no_such_module'" in found.reason
    found = fit_for_cpu(problem(LITERAL.replace("x + 1", "x + torch.unique(x.new_ones(2, 65), dim=0).numel()")))
    assert isinstance(found, Unfit) and "what a reference needs to know before it runs" in found.reason


def test_a_recurrence_is_shortened_until_its_trace_is_not_too_long() -> None:
    found = fitted(fit_for_gpu(problem(RECURRENT), 1 << 40))
    # select, add and tanh per step: 3 x 2048 + 2 operators; with 4096 steps, more than 8000.
    assert found.whole == {"length": 2048} and found.problem.source != RECURRENT
    assert load_reference(found.problem.source, small=False).inputs(0)[0].shape == (2048, 64)
    on_cpu = fitted(fit_for_cpu(problem(RECURRENT)))
    assert on_cpu.whole == {"length": 2048} and describe([on_cpu])["resized"] == {"level1/x": {"length": 2048}}


def test_a_recurrence_whose_sizes_have_no_name_is_shortened_too() -> None:
    text = RECURRENT.replace("length = 4096\nwidth = 64\n", "").replace("torch.rand(length, width)", "torch.rand(4096, 64)")
    for found in (fitted(fit_for_gpu(problem(text), 1 << 40)), fitted(fit_for_cpu(problem(text)))):
        assert found.whole == {"SIZE_4096": 2048}
        assert load_reference(found.problem.source, small=False).inputs(0)[0].shape == (2048, 64)
    # Half of the bytes that 4096 x 4096 inputs and results need: a size without a name, made smaller on a card.
    half = fitted(fit_for_gpu(problem(LITERAL), need(LITERAL, "x").gpu_bytes // 2))
    assert half.whole == {"SIZE_4096": 2048}


def test_of_many_sizes_only_the_one_that_makes_a_trace_too_long_is_reduced() -> None:
    # The width is larger and comes first, but no width makes the trace shorter.
    wide = RECURRENT.replace("width = 64", "width = 8192")
    assert fitted(fit_for_gpu(problem(wide), 1 << 40)).whole == {"length": 2048}


def test_on_a_gpu_only_what_needs_too_much_memory_is_made_smaller() -> None:
    needed = need(LINEAR, "x").gpu_bytes
    assert fit_for_gpu(problem(LINEAR), needed) == Fitted(problem(LINEAR), {}, {})
    found = fitted(fit_for_gpu(problem(LINEAR), needed - 1))
    assert found.whole == {"batch": 512}  # the inputs' own size first: the model stays


def test_what_a_forward_needs_is_counted() -> None:
    found = need(LINEAR, "x")
    inputs, weights, made = 1024 * 8192, 8192 * 2048 + 2048, 2 * 1024 * 2048
    assert (found.inputs, found.weights, found.made, found.outputs) == (inputs, weights, made, 1024 * 2048)
    assert found.flops == 2 * 1024 * 8192 * 2048


@pytest.mark.parametrize("ending", ["", "\n", "\n\n"])
def test_resized_text_has_nothing_else_changed(ending: str) -> None:
    assert resize("# note: N = 8\nN = 4096" + ending, {"N": 8}) == "# note: N = 8\nN = 8\n"


def test_names_that_one_line_assigns_together_change_together() -> None:
    assert resize("a = b = 64\n", {"a": 8, "b": 8}) == "a = b = 8\n"
    with pytest.raises(ValueError, match="SMALL gives other values to names that one line assigns together"):
        resize("a = b = 64\n", {"a": 8, "b": 4})


# The groups must divide the features, and a file's numbers are far above any limit.
GROUPED = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, features, groups):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.norm = nn.GroupNorm(groups, features)
    def forward(self, x):
        return self.norm(self.linear(x))
batch, features, num_groups = 1024, 8192, 512
widths = [64] * 3
def get_inputs():
    return [torch.rand(batch, features)]
def get_init_inputs():
    return [features, num_groups]
"""
)
# Hard-coded: 3 x 96 x 96 inputs go through 64 channels, whose results cannot be made smaller.
FIXED = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 64, 3, padding=1)
        self.linear = nn.Linear(64 * 96 * 96, 4)
    def forward(self, x):
        return self.linear(torch.relu(self.conv(x)).flatten(1))
batch = 64
def get_inputs():
    return [torch.rand(batch, 3, 96, 96)]
def get_init_inputs():
    return []
"""
)


def test_ratios_of_groups_to_features_stay_where_all_sizes_are_divided() -> None:
    assert counts_of(GROUPED) == {"batch": 1024, "features": 8192, "num_groups": 512, "widths": [64, 64, 64]}
    assert divided({"features": 8192, "num_groups": 512, "few": 3}, 16) == {"features": 512, "num_groups": 32, "few": 1}
    found = fitted(fit_for_cpu(problem(GROUPED)))
    # An eighth of each: 1 M weights, 2 x 128 x 1024^2 = 2^28 flops.
    assert found.compared == {"batch": 128, "features": 1024, "num_groups": 64, "widths": [8, 8, 8]}
    assert small_of(found.problem.source) == found.compared


def test_ratios_stay_before_everything_becomes_one() -> None:
    """Scales of blocks of 128 numbers: 14336 of them halve to 7, where blocks of 8 do not fit in."""
    blocks = """
import torch
import torch.nn as nn
BLOCK = 128
class Model(nn.Module):
    def forward(self, x, w, scales):
        k, n = w.shape
        return x @ (w.reshape(k // BLOCK, BLOCK, n) * scales[:, None]).reshape(k, n)
def get_inputs():
    m, k, n = 16, 14336, 4096
    return [torch.randn(m, k), torch.randn(k, n), torch.randn(k // BLOCK, n)]
def get_init_inputs():
    return []
"""
    found = fitted(fit_for_cpu(problem(blocks))).compared
    assert found["SIZE_14336"] // found["BLOCK"] == 112
    assert min(found["BLOCK"], found["SIZE_4096"]) >= 8


def test_where_no_size_is_comfortable_the_least_is_taken() -> None:
    found = fitted(fit_for_cpu(problem(FIXED)))
    assert found.compared == {"batch": 1}
    wanted = need(resize(FIXED, {"batch": 1}), "x")
    made = 64 * 96 * 96
    assert wanted.inputs + wanted.made == 3 * 96 * 96 + 2 * made + 4, "1.2 M elements, over 2^19"
    assert (wanted.weights, wanted.traceable) == (3 * 64 * 9 + 64 + 4 * made + 4, True)
    assert isinstance(fit_for_cpu(problem(FIXED.replace("96, 4)", "96, 300)"))), Unfit), "177 M weights are too many"


LAYER = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(64, 64)
    def forward(self, x):
        return self.cell(x)[0]
def get_inputs():
    return [torch.rand(5000, 1, 64)]
def get_init_inputs():
    return []
"""
)


def test_a_layer_that_is_recorded_whole_is_one_operator() -> None:
    found = need(LAYER, "x")
    assert found.operators < 20, "not 5000 cells"
    assert found.flops == 2 * 5000 * (4 * 64 * 64 + 4 * 64 * 64)


WINDOWS = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        wide = [nn.Conv2d(3 if i == 0 else 512, 512, 3, stride=2 if i % 2 else 1, padding=1) for i in range(5)]
        self.layers = nn.Sequential(*wide, nn.MaxPool2d(3, 2, 1))
    def forward(self, x):
        return self.layers(x)
batch_size = 64
height = 256
width = 256
def get_inputs():
    return [torch.rand(batch_size, 3, height, width)]
def get_init_inputs():
    return []
"""
)


def test_extents_stay_above_the_windows_where_that_costs_little() -> None:
    """Weights of 9.5 million elements are more than comfortable at any size. Two convolutions of stride 2 leave a quarter: of 16
    pixels 4 for the pooling, of which the window is 3; of 8 pixels 2."""
    found = fitted(fit_for_cpu(problem(WINDOWS))).compared
    assert (found["height"], found["width"]) == (16, 16) and found["batch_size"] <= 2
    one, two = (count(resize(WINDOWS, found | {"height": n, "width": n}), "x", H200).cramped for n in (8, 16))
    assert (one, two) == (2, 0)


@pytest.mark.parametrize(
    ("line", "stays"),
    [
        ("F.cross_entropy(x, t, ignore_index=EMPTY)", True),
        ("x[t != EMPTY].sum()", True),
        ("(x * (EMPTY == t)).sum()", True),
        ("x[t < EMPTY].sum()", False),  # a length may be meant
        ("x.view(-1, EMPTY).sum() if x.shape[1] == EMPTY else x.sum()", False),
        ("F.cross_entropy(x, t.clamp(max=EMPTY), ignore_index=EMPTY)", False),
    ],
)
def test_a_number_among_the_inputs_is_no_size(line: str, stays: bool) -> None:
    text = f"ROWS = 512\nEMPTY = 255\ndef forward(x, t):\n    return {line}\ndef get_inputs():\n    return [torch.rand(ROWS)]\n"
    assert (sizes_of(text), counts_of(text)) == (({"ROWS": 512},) * 2 if stays else ({"ROWS": 512, "EMPTY": 255},) * 2)


@pytest.mark.parametrize("name", ["IGNORE_LABEL", "EOS_ID", "mask_token", "UNK_IDX"])
def test_a_token_is_no_size_whatever_is_done_with_it(name: str) -> None:
    assert sizes_of(f"vocabulary = 32000\n{name} = 31999\nmasks = 64\n") == {"vocabulary": 32000, "masks": 64}
