"""A reproduction: queueing at the link of one receiver, as textbooks have it. The folder holds no more Python."""
