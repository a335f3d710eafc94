"""Mutants of honest kernels: small changes that make most of them wrong, judged by the evaluator, and a control of the accepted.

kinds.py                         the registry of kinds, and what they share
memory.py, arithmetic.py, host.py    the kinds
draw.py                          mutants of a candidate, and a draw of them
controls.py                      what an accepted mutant does on other inputs and at other sizes
report.py                        kinds by verdicts, and the accepted mutants
__main__.py                      the command
"""

from benchmarks.mutants import arithmetic, host, memory

__all__ = ["arithmetic", "host", "memory"]
