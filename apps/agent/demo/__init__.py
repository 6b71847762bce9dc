"""The demo model (TU-8): answers where no endpoint is set. Deterministic, without a network, and it knows no module by name.

`commands` reads `/name key=value`, `wording` finds the tool that a sentence means, `filling` its arguments, `telling` puts results into
words, and `model` is the conversation of them all.
"""
