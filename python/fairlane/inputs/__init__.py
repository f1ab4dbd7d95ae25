"""Reading what users write: files with line numbers, problems with suggestions, parameters judged by their schema."""
