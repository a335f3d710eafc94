"""One file per ablation."""
