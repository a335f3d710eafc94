"""Compilation: the text of kernels to binaries for a card, trusted code over untrusted text. Start at `compiler`."""
