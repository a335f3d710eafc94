"""What is asked of a process before it joins others."""

from __future__ import annotations

import pytest
import torch

from rlkernel.errors import UsageError
from rlkernel.training import ranks
from rlkernel.training.micro_batches import deal


def test_one_process_is_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WORLD_SIZE", "RANK", "LOCAL_WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    assert (ranks.size(), ranks.rank(), ranks.local_size(), ranks.local_rank()) == (1, 0, 1, 0)
    ranks.send("nobody hears it")
    assert ranks.shared("its own") == "its own"
    ranks.part()
    ranks.meet()
    ranks.leave()
    assert ranks.total(torch.tensor([1.0, 2.0])).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("name", ["DEEPSPEED", "MEGATRON_LM"])
def test_what_accelerate_offers_beside_fsdp_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ranks.check()
    monkeypatch.setenv(f"ACCELERATE_USE_{name}", "true")
    with pytest.raises(UsageError, match=f"accelerate is configured for {name}: use --multi_gpu alone, or FSDP2"):
        ranks.check()


def test_only_what_torch_says_of_others_is_a_loss() -> None:
    with (
        pytest.raises(ranks.Lost, match=r"from the last checkpoint \(DistNetworkError: Connection reset by peer\)$"),
        ranks.noticed(),
    ):
        raise torch.distributed.DistNetworkError("Connection reset by peer\nException raised from ...")
    with pytest.raises(ranks.Lost), ranks.noticed():
        raise RuntimeError("[third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:8115")
    with pytest.raises(RuntimeError, match="ours"), ranks.noticed():
        raise RuntimeError("ours")


def test_tokens_are_dealt_evenly_and_not_rows() -> None:
    # 100 tokens outweigh the three that follow; rows by number would be [0, 2] and [1, 3].
    assert deal([100, 1, 1, 1], 2) == [[0], [1, 2, 3]]
    # 9 and 8 first; 5 to the 8, 4 to the 9: 13 each; the last to the first.
    assert deal([5, 9, 4, 8, 1], 2) == [[1, 2, 4], [3, 0]]


@pytest.mark.parametrize(("rows", "processes"), [(9, 2), (2, 3), (0, 2), (7, 1)])
def test_every_row_is_dealt_to_one_process_and_tokens_are_even(rows: int, processes: int) -> None:
    lengths = [(7 * i) % 11 + 1 for i in range(rows)]
    dealt = deal(lengths, processes)
    assert len(dealt) == processes
    assert sorted(row for own in dealt for row in own) == list(range(rows))
    tokens = [sum(lengths[row] for row in own) for own in dealt]
    assert max(tokens) - min(tokens) <= max(lengths, default=0)
