"""Inputs of rounds: start at `stress`, which scales, shifts and spreads them where `places` has found that the reference bears
it. `placing` puts inputs and modules on a device."""
