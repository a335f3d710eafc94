"""One small file per method; the tables below are the registry."""

from algorithms.grpo import GRPO
from algorithms.speed_reward import SpeedReward
from algorithms.trloo import TRLOO
from algorithms.uniform_credit import UniformCredit

ADVANTAGES: dict[str, type] = {"grpo": GRPO, "trloo": TRLOO}
REWARDS: dict[str, type] = {"speed": SpeedReward}
REJECTIONS: dict[str, type] = {}
CREDITS: dict[str, type] = {"uniform": UniformCredit}
