"""Child processes: `fork_server` starts and ends them, `zygote` is what they run, `sandbox` locks them."""
