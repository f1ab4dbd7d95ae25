"""One plug-in of each kind: what fairlane takes from an installed package."""
