"""Runs on disk: what a run leaves behind and sends away.

Start at `directory`, which lists the files of a run and says how one is resumed. `log` writes rows and transcripts, `outcomes`
what was measured per problem, `wandb` sends both to Weights & Biases, `texts` reads lines back and cuts long texts.
"""
