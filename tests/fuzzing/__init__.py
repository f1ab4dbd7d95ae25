"""A mutation fuzzer over everything that fairlane reads: real inputs, damaged at random, must end in a message.

An input passes if its command ends within 20 s and 2 GB of memory, with one of the documented exit codes and without a
traceback. Every input is drawn from a seed and its number, so a failure can be had again::

    PYTHONPATH=tests python -m fuzzing --inputs 12000
    PYTHONPATH=tests python -m fuzzing --only 4711
"""
