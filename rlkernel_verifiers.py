"""The plugin that `verifiers` finds by its name, `rlkernel-verifiers`: see `rlkernel.integrations.verifiers`."""

from rlkernel.integrations.verifiers import KernelEnv, KernelTaskset

__all__ = ["KernelEnv", "KernelTaskset"]
