"""Why a run was slow: where ranks spent their time, whom they waited for, and what made those late.

All functions take data frames and return data frames, so that they serve many runs as well as one; ``analyze`` puts
them together for a run's folder.
"""
