"""Views of results: one for a terminal, for pictures, for pages and for notebooks.

``kinds`` has the kinds of results, ``model`` and ``tables`` what a view consists of; these two import no library, so
that every command can print a table at once.
"""
