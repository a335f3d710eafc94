"""Examples: the loop in one file (`rl_loop`), the evaluator in other people's trainers, and solutions for KernelBench."""

from rlkernel.errors import tell_usage_errors
from rlkernel.starting import loading_command

tell_usage_errors()
loading_command("the example")
