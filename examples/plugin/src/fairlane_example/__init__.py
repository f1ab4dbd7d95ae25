"""Plug-ins of seven kinds: what fairlane takes from an installed package."""
