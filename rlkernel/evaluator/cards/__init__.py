"""Cards: the pool's end of every GPU. `gpus` finds them, `gpu_runner` leases one and keeps its process alive, `watch` looks for
disturbances, `baselines` stores how long references take."""
