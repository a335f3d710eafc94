"""Cards: the pool's end of every GPU. `gpus` finds them, `gpu_runner` leases one and keeps its process alive, `watch` looks for
disturbances, `studies` measures problems, `kept_times` keeps how long references take in the store of `baselines`."""
