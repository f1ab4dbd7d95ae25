"""Studies that come with fairlane, each in a folder and with a command: load sweeps, GPCNeT, failures."""
