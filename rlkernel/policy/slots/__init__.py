"""Continuous batching: a fixed number of slots that take the next completion as soon as one is done. Start at `engine`."""
