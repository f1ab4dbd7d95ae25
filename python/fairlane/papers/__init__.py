"""Papers and campaigns: claims and measurements of others, simulated, judged and drawn."""
