"""The steps of the flow (RF-1 to RF-10), each a function over the state of the call, in a room for each part of the way.

A step returns None to go on and nothing else by it, returns an Answer to end well, or raises Problem to refuse. Where a step stands in
the tuples of `gate` is the rule: what is refused before `open_audit` leaves no entry.
"""
