"""The base of all fitted models: files with a schema and a checksum, cross-validation, intervals, error metrics, trees.

A saved model is data and never code: reading a file of unknown origin can run nothing. Predicting takes numpy only,
fitting takes scikit-learn.
"""
