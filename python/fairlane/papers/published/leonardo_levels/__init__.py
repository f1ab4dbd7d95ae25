"""A collective beside Leonardo's production traffic, on its service level and on an unused one."""
