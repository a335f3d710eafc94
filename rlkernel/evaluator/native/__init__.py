"""Candidates as plain Python, each in a process of its own that is fenced in and thrown away. Start at `referee`.

referee.py     trusted: seeds, the reference, the clock that counts, the comparison
held.py        the referee's end of the candidate's process: questions with a deadline, and its end
candidate.py   what that process does; everything that it says is untrusted
calls.py       what both sides do alike: modules and inputs from seeds, one timed call
agreement.py   verdicts beside native runs: the table, disagreements, speedups
"""
