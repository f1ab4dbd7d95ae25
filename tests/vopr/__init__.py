"""Random whole-system test: random scenarios, random actions while they run, and everything that must hold of them.

``python -m vopr --seed N --count K --seconds S`` (in ``tests``) tries many. A seed draws a `case`: a scenario with
actions, both plain data. `checks` runs it in several ways that must agree, compares it with the second simulator
(`reference`) and checks `laws`. A case that fails is made smaller (`shrink`) and printed; it can be stored and
replayed, whatever becomes of the generator. Kinds of everything come from the registries.
"""
