"""From candidate source to Program, in a sandboxed child."""
