"""Wilke and Kenny 2020, Opportunities and limitations of quality of service in MPI applications."""
