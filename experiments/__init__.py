"""One file per ablation."""

from rlkernel.errors import tell_usage_errors

tell_usage_errors()
