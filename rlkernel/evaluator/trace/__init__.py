"""Tracing: candidate source to Program, in a locked child without a GPU. Start at `candidate`."""
