import torch
from torch import nn

from rlkernel.evaluator.judging.errors.noise import confirmed, moved_call
from rlkernel.evaluator.judging.errors.own_error import OwnError
from rlkernel.evaluator.judging.references.reference_calls import state_of

NOISE = OwnError(noise=8.0)


class Returning(nn.Module):
    """A module with one weight and a buffer, of which forward gives three answers."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(64, generator=torch.Generator().manual_seed(1)))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self.seen += 1
        mean = nn.functional.layer_norm(x * self.weight, (64,)).mean(1)
        return mean, x - x.bfloat16().float(), x * torch.finfo(x.dtype).eps


def called() -> tuple[Returning, torch.Tensor, list[torch.Tensor]]:
    model, x = Returning(), torch.randn(32, 64, generator=torch.Generator().manual_seed(0))
    before = {name: tensor.clone() for name, tensor in state_of(model).items()}
    with torch.no_grad():
        found = list(model(x))
    again = moved_call(model, before, [x], 0, ("seen",))
    assert again is not None and again.pop() == 1, "the copy starts with the state of before the call"
    assert model.seen == 1, "the module itself is left alone"
    return model, x, [*found, *again]


def test_noise_is_what_moved_arguments_change_altogether() -> None:
    """The mean of what was normalised; not what bfloat16 leaves, 2^-9 of a number, of which two roundings are 2^-13, nor a
    multiple of float32's resolution."""
    _, _, both = called()
    found, again = both[:3], both[3:]
    assert [one.noise for one in confirmed([NOISE] * 3, found, lambda: again)] == [8.0, 0.0, 0.0]


def test_nothing_is_called_again_where_nothing_seems_noise() -> None:
    asked: list[int] = []

    def again() -> None:
        asked.append(1)

    ordinary = OwnError(norm=1e-6)
    assert confirmed([ordinary], [torch.ones(8)], again) == [ordinary] and not asked
    assert confirmed([NOISE], [torch.ones(8)], again) == [OwnError()], "a reference that refuses confirms nothing"
    assert asked == [1]


def test_whole_numbers_are_not_moved() -> None:
    class Table(nn.Module):
        def forward(self, index: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return x[index]

    index, x = torch.arange(8), torch.ones(8, dtype=torch.float16)
    again = moved_call(Table(), {}, [index, x], 0)
    assert again is not None and again[0].dtype is torch.float16
    # 1 moves by 2 x 2^-10 up or down
    assert set(again[0].tolist()) <= {1 - 2**-9, 1 + 2**-9}
