"""Cards: the pool's end of every GPU. Nothing here initialises CUDA.

gpus         finds the cards, and reads their state
gpu_runner   leases one, and keeps its process alive
card_profile what a card can do at best, for the roofline
at_hand      suits memory and profile to the cards at hand, and says who else uses them
watch        looks for disturbances while a card is measured on
studies      measures problems once per card
kept_times   keeps how long references take, in the store of `baselines`
"""
