"""What a policy reads and is paid by default: `KernelEnvironment` (prompt, extraction of code, feedback) and `SpeedReward`.

Start at `kernel_env`. Problems, and environments of an experiment's own, are in `envs`; other rewards are in `algorithms`.
"""
