"""Child processes of the evaluator. Start at `fork_server`, which is all that others import.

fork_server   the pool's end: asks for children, talks to them, sees their death
start         starts the zygote without garbage collection
zygote        the process that forks them
warming       what the zygote runs before it forks, so that children find caches warm
heap          what becomes of the zygote's memory before it forks
jobs          what each kind of child does
sandbox       locks a child in before it meets anything untrusted
"""
