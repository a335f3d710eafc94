"""Turn-level GRPO (arXiv 2402.03300 eq. 4; the multi-turn form is the baseline of arXiv 2602.05885)."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class GRPO:
    """A_{k,t} = (G_{k,t} - mean_t) / (std_t + eps) over the N_t valid trajectories of the same (prompt, turn).

    A sample is part of its own mean, which shrinks the expected gradient by 1 - 1/N_t. A turn with N_t <= ddof has no
    standard deviation: its advantages are 0. Public implementations differ in all three fields.

    Worked example, returns [1, 0, 0, 0]: mean 0.25, std (ddof 1) 0.5, so A = [1.5, -0.5, -0.5, -0.5].
    """

    std: bool = True
    """Divide by the standard deviation; False is Dr. GRPO (arXiv 2503.20783)."""
    ddof: int = 1
    """1: sample standard deviation (TRL, verl); 0: population (torchtitan)."""
    eps: float = 1e-6

    def __call__(self, returns_KT: torch.Tensor, valid_KT: torch.Tensor) -> torch.Tensor:
        """See `rlkernel.interfaces.Advantage`."""
        valid_KT = valid_KT.bool()
        returns_KT = torch.where(valid_KT, returns_KT.double(), 0.0)
        count_T = valid_KT.sum(0)
        mean_T = returns_KT.sum(0) / count_T.clamp(min=1)
        centred_KT = torch.where(valid_KT, returns_KT - mean_T, 0.0)
        if not self.std:
            return centred_KT
        # A constant turn is exactly 0 here, not rounding noise divided by eps.
        constant_T = (returns_KT == returns_KT.where(valid_KT, -torch.inf).amax(0)).logical_or(~valid_KT).all(0)
        degrees_T = count_T - self.ddof
        std_T = (centred_KT.square().sum(0) / degrees_T.clamp(min=1)).sqrt()
        defined_T = (degrees_T > 0) & ~constant_T
        return torch.where(defined_T, centred_KT / (std_T + self.eps), 0.0)
