"""Pages from finished runs: `python -m experiments.results` (`command`).

`collecting` finds the runs, `adding` puts them beside those that are kept as numbers, `numbers` keeps every measurement, `pages`
writes the claims beside what was measured, `figure` draws the verdicts, `transcripts` shows what a mechanism looks like, and
`archive` moves earlier results aside.
"""
