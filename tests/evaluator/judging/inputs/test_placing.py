"""Where a file's tensors are made: on the judge's device where that is possible, whatever the file names. "meta" stands for a GPU
where no value is looked at."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.judging.errors.comparison import bits
from rlkernel.evaluator.judging.inputs import placing
from rlkernel.evaluator.judging.inputs.placing import Draws, Placing, everything_on
from rlkernel.reference import load_reference
from rlkernel.seeds import seed_generators

META = torch.device("meta")


def test_what_fails_on_a_device_is_made_on_the_host_from_the_first_call_on() -> None:
    mixes = "return [torch.from_numpy(np.ones(3)) + torch.ones(3)]"  # meta knows no sum of its tensors and others
    for draw, where in ((mixes, "cpu"), ("return [torch.ones(3)]", "meta")):
        source = (
            "import numpy as np\nimport torch\nfrom torch import nn\nclass Model(nn.Module):\n    pass\n"
            f"def get_init_inputs():\n    return []\ndef get_inputs():\n    {draw}\n"
        )
        one, place = load_reference(source, small=False), Placing(META)
        for seed in (0, 1):
            (x,) = place(lambda one=one, seed=seed: one.inputs(seed))
            assert (x.device.type, place.on_host) == (where, where == "cpu")


def test_the_first_call_decides_where_tensors_are_made() -> None:
    def failing() -> None:
        raise BrokenReference("it fails here alone")

    place = Placing(torch.device("cpu"))
    assert place(lambda: 3) == 3
    with pytest.raises(BrokenReference):
        place(failing)
    assert place.on_host is False


@pytest.mark.parametrize(
    ("made", "where"),
    [
        ("torch.rand(4, device='cpu')", "meta"),
        ("torch.zeros(4, device='cpu', dtype=torch.float16).uniform_(-1, 1)", "meta"),
        ("torch.empty((4, 4), device=torch.device('cpu')).normal_()", "meta"),
        ("torch.randint(0, 9, (4,), device='cpu', dtype=torch.int32).to('cpu')", "meta"),
        ("torch.randperm(8, device='cpu')[:4].cpu() + torch.arange(4)", "meta"),
        ("torch.full((4,), 2.0).to(device='cpu', dtype=torch.float16)", "meta"),
        ("torch.tensor([1, 2, 3], device='cpu')", "meta"),
        ("torch.multinomial(torch.ones(4, device='cpu'), 2)", "meta"),
        ("torch.from_numpy(np.ones(4))", "cpu"),  # which is copied afterwards
        ("torch.from_numpy(torch.rand(4, device='cpu').numpy() + 1)", "raises"),
        ("torch.rand(4, device=torch.device('meta')).to('cpu')", "raises"),  # a copy there, which is no other tensor here
        ("torch.rand(4, device=torch.device('meta')).cpu()", "raises"),
    ],
)
def test_where_a_file_that_names_the_cpu_makes_its_tensors(made: str, where: str) -> None:
    def draw() -> torch.Tensor:
        found: torch.Tensor = eval(made, {"torch": torch, "np": np})
        return found

    if where == "raises":
        with pytest.raises((RuntimeError, TypeError)), everything_on(META):
            draw()
    else:
        with everything_on(META):
            assert draw().device.type == where
    assert torch.rand(1).device.type == torch.rand(1, device="cpu").device.type == "cpu", "nothing of it stays"


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float32, torch.float16, torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2,
        torch.int64, torch.uint8, torch.uint16, torch.bool,
    ],
)  # fmt: skip
def test_memory_that_a_file_does_not_fill_is_full_of_numbers_of_the_seed(dtype: torch.dtype) -> None:
    def drawn(seed: int) -> list[torch.Tensor]:
        seed_generators(seed)
        with everything_on(torch.device("cpu")):
            one = torch.empty(256, dtype=dtype)
            return [one, torch.empty_like(one), one.new_empty(64), torch.empty(64, requires_grad=True)]

    first, again, other = ([bits(tensor.detach()).tolist() for tensor in drawn(seed)] for seed in (1, 1, 2))
    assert first == again
    assert all(a != b for a, b in zip(first, other, strict=True))
    assert bool(torch.isfinite(drawn(1)[0].to(torch.complex64)).all())


class File:
    """Draws as a problem's file does, and counts. Each draw takes `seconds` of a clock of its own."""

    def __init__(self, made: Callable[[int], list[Any]], seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seeds: list[int] = []
        self._made, self._seconds, self._now = made, seconds, 0.0
        monkeypatch.setattr(time, "perf_counter", lambda: self._now)

    def draw(self, seed: int) -> list[Any]:
        self.seeds.append(seed)
        self._now += self._seconds
        return self._made(seed)


def of_numpy(seed: int) -> list[Any]:
    return [torch.from_numpy(np.full(4, float(seed))), seed]


@pytest.fixture
def values(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is copied to the device keeps its values here: a copy on the host."""
    monkeypatch.setattr(placing, "placed", lambda tensor, device: tensor.clone())


@pytest.mark.usefixtures("values")
def test_a_slow_draw_of_the_host_is_made_once_for_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    file = File(of_numpy, 2.0, monkeypatch)
    draws = Draws(file.draw, META)
    for seed in (1, 1, 2, 1, 2):
        x, number = draws(seed)
        assert (x.tolist(), number) == ([float(seed)] * 4, seed)
        x.zero_()  # whatever becomes of it
    assert file.seeds == [1, 2]
    draws.forget()
    draws(1)
    assert file.seeds == [1, 2, 1]


@pytest.mark.usefixtures("values")
def test_a_file_that_writes_to_its_own_tensor_again_changes_no_draw_that_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    own = torch.zeros(4)
    draws = Draws(File(lambda seed: [own.fill_(seed)], 2.0, monkeypatch).draw, META)
    assert [draws(seed)[0].tolist()[0] for seed in (1, 2, 1)] == [1.0, 2.0, 1.0]


@pytest.mark.usefixtures("values")
def test_draws_are_kept_within_their_memory_and_the_oldest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "KEPT_BYTES", 100)  # three draws of 32 bytes
    file = File(of_numpy, 2.0, monkeypatch)
    draws = Draws(file.draw, META)
    for seed in (1, 2, 3, 4, 3, 2, 1):
        draws(seed)
    assert file.seeds == [1, 2, 3, 4, 1]
    monkeypatch.setattr(placing, "KEPT_BYTES", 31)
    large = File(of_numpy, 2.0, monkeypatch)
    draws = Draws(large.draw, META)
    draws.ready(1)
    assert [draws(1)[1], draws(1)[1], large.seeds] == [1, 1, [1, 1]]
    monkeypatch.setattr(placing, "KEPT_BYTES", 100)
    growing = File(lambda seed: [torch.from_numpy(np.zeros(4 * seed))], 2.0, monkeypatch)
    draws = Draws(growing.draw, META)
    for seed in (1, 4, 1, 4):
        draws(seed)
    assert growing.seeds == [1, 4, 4], "128 bytes are never kept, whatever the first draw had"


@pytest.mark.usefixtures("values")
def test_what_is_made_ready_is_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the card is idle for as long before a candidate as before the reference beside it."""
    file = File(of_numpy, 2.0, monkeypatch)
    draws = Draws(file.draw, META)
    draws(0)
    draws.ready(1)
    assert file.seeds == [0, 1]
    assert [draws(1)[0].tolist()[0], draws(1)[0].tolist()[0], file.seeds] == [1.0, 1.0, [0, 1]]


def test_a_fast_draw_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    file = File(of_numpy, 0.01, monkeypatch)
    draws = Draws(file.draw, META)
    assert [draws(1)[0].device.type for _ in range(2)] == ["meta", "meta"]
    assert file.seeds == [1, 1]


def where_of(made: list[Any]) -> str:
    tensor = made[0]
    assert isinstance(tensor, torch.Tensor)
    return tensor.device.type


@pytest.mark.parametrize(
    ("same", "on_device", "on_host", "where", "drawn"),
    [
        (True, 0.001, 0.0, "meta", [1, 1, 2, 2]),
        (False, 0.001, 9.0, "cpu", [1, 1, 1, 2]),  # other bits each time: never there. The host's are kept
        (True, 3.0, 0.001, "cpu", [1, 1, 1, 2, 2]),  # a loop over single elements
        (True, 3.0, 9.0, "meta", [1, 1, 1, 2]),  # slow on either
    ],
)
def test_what_a_device_draws_alike_and_fast_is_drawn_there(
    monkeypatch: pytest.MonkeyPatch, same: bool, on_device: float, on_host: float, where: str, drawn: list[int]
) -> None:
    monkeypatch.setattr(placing, "_same", lambda one, other: same)
    monkeypatch.setattr(placing, "placed", lambda tensor, device: tensor)
    monkeypatch.setattr(placing, "_copied", lambda tensor, device: tensor)
    file = File(lambda seed: [torch.rand(4, device="cpu")], 0.0, monkeypatch)
    real = file._made

    def made(seed: int) -> list[Any]:
        found = real(seed)
        file._now += {"meta": on_device, "cpu": on_host}[where_of(found)]
        return found

    file._made = made
    draws = Draws(file.draw, META)
    assert [where_of(draws(seed)) for seed in (1, 2, 2)] == [where] * 3
    assert file.seeds == drawn


@pytest.mark.parametrize("same", [True, False])
def test_a_file_that_runs_on_the_device_alone_is_drawn_there(monkeypatch: pytest.MonkeyPatch, same: bool) -> None:
    monkeypatch.setattr(placing, "_same", lambda one, other: same)
    monkeypatch.setattr(placing, "_copied", lambda tensor, device: tensor)

    def made(seed: int) -> list[Any]:
        found = torch.rand(4)
        if not found.is_meta:
            raise BrokenReference("it runs on the device alone")
        return [found]

    draws = Draws(File(made, 2.0, monkeypatch).draw, META)
    assert [where_of(draws(seed)) for seed in (1, 2)] == ["meta", "meta"]


def test_a_draw_that_is_copied_no_faster_than_drawn_is_not_kept() -> None:
    large = [torch.empty(1 << 28, dtype=torch.uint8)]  # 0.13 s to copy
    assert [placing._is_slow(seconds, large) for seconds in (0.1, 0.2)] == [False, True]


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(6.0).expand(4, 6),
        torch.arange(24.0).view(4, 6).t(),
        torch.arange(24.0)[3:].as_strided((3, 2), (5, 2)),
        torch.zeros(0, 3),
        torch.tensor(2.0),
    ],
)
def test_a_copy_lies_as_its_tensor_does(tensor: torch.Tensor) -> None:
    copied = placing._copied(tensor, torch.device("cpu"))
    assert copied.stride() == tensor.stride() and torch.equal(copied, tensor)
    assert copied.numel() == 0 or copied.data_ptr() != tensor.data_ptr()


@pytest.mark.gpu
@pytest.mark.parametrize(
    "made",
    [
        "torch.zeros(1 << 20, device='cpu').uniform_(-3, 3), torch.empty(1 << 20, device='cpu')",
        "torch.from_numpy(np.random.standard_normal(1 << 22)), torch.empty(1 << 10), torch.randperm(1 << 10)",
        "torch.rand(64, generator=torch.Generator().manual_seed(1)).expand(8, 64),",
    ],
)
def test_one_seed_gives_the_same_bits_on_a_gpu_and_another_seed_others(made: str) -> None:
    torch.cuda.init()
    text = (
        "import numpy as np\nimport torch\nfrom torch import nn\nclass Model(nn.Module):\n    pass\n"
        f"def get_init_inputs():\n    return []\ndef get_inputs():\n    return [{made}]\n"
    )
    file, cuda = load_reference(text, small=False), torch.device("cuda")
    draws = Draws(file.inputs, cuda)
    one, again, other = draws(1), draws(1), draws(2)
    assert all(tensor.is_cuda for tensor in one)
    for a, b, c in zip(one, again, other, strict=True):
        assert a.stride() == b.stride() and torch.equal(bits(a), bits(b)) and not torch.equal(a, c)
        assert a.data_ptr() != b.data_ptr()


@pytest.mark.gpu
def test_a_hundred_million_numbers_that_a_file_draws_on_the_cpu_take_no_time_of_the_host() -> None:
    def drawn(seed: int) -> list[Any]:
        seed_generators(seed)
        return [torch.zeros(100_000_000, device="cpu").uniform_(-1, 1)]

    torch.cuda.init()
    draws = Draws(drawn, torch.device("cuda"))
    draws(1)
    torch.cuda.synchronize()
    begun = time.perf_counter()
    draws(2)
    torch.cuda.synchronize()
    assert time.perf_counter() - begun < 0.1  # a host takes 0.5 s and more


@pytest.mark.parametrize(
    ("drawn", "found"), [("torch.randn(4)", False), ("torch.randn(4, device='cpu')", True), ("torch.empty(4)", True)]
)
def test_calls_are_looked_at_where_there_is_something_to_do(drawn: str, found: bool) -> None:
    with everything_on(torch.device("meta")) as looking:
        eval(drawn, {"torch": torch})
    assert looking.found is found
