from __future__ import annotations

import copy

import torch
from torch import nn

from experiments.cold_start.optimizer import MuonAndAdamW


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(11, 8), nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 11))


def step(net: nn.Module, optimizer: MuonAndAdamW) -> float:
    x = torch.arange(11)
    loss = nn.functional.cross_entropy(net(x), (3 * x + 1) % 11)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def test_it_learns_a_permutation() -> None:
    net = model()
    optimizer = MuonAndAdamW(net, muon=0.02, adamw=0.02)
    losses = [step(net, optimizer) for _ in range(60)]
    assert losses[0] > 2.0
    assert losses[-1] < 0.3


def test_matrices_go_to_muon_and_everything_else_to_adamw() -> None:
    net = model()
    matrices, others = MuonAndAdamW(net, muon=0.02, adamw=0.02).param_groups
    assert [tuple(p.shape) for p in matrices["params"]] == [(16, 8), (11, 16)]
    assert [tuple(p.shape) for p in others["params"]] == [(11, 8), (16,), (11,)]


def test_a_rate_of_zero_in_the_groups_stops_both() -> None:
    net = model()
    optimizer = MuonAndAdamW(net, muon=0.02, adamw=0.02)
    before = copy.deepcopy(net.state_dict())
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    step(net, optimizer)
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())


def test_a_resumed_run_goes_on_as_if_it_had_not_stopped() -> None:
    net = model()
    optimizer = MuonAndAdamW(net, muon=0.02, adamw=0.02)
    for _ in range(3):
        step(net, optimizer)
    weights, state = copy.deepcopy(net.state_dict()), copy.deepcopy(optimizer.state_dict())
    expected = [step(net, optimizer) for _ in range(3)]

    fresh = model()
    fresh.load_state_dict(weights)
    resumed = MuonAndAdamW(fresh, muon=0.5, adamw=0.5)
    resumed.load_state_dict(state)
    assert [step(fresh, resumed) for _ in range(3)] == expected
