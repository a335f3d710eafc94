"""Pages from finished runs: `python -m experiments.results` (`command`).

`pages` writes the claims beside what was measured, `figure` draws the verdicts, `transcripts` shows what a mechanism looks like,
`numbers` keeps every measurement beside its page, and `archive` moves earlier results aside.
"""
