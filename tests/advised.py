"""A small scenario to ask for advice about: an application and its neighbour on a fabric with two rails."""

SCENARIO = """
duration = "1 ms"
[fabric]
topology = "fat_tree"
hosts = 16
levels = 2
radix = 8
bandwidth = "3.2 GB/s"
rails = 2
[qos]
service_levels = 2
arbiter = { name = "weighted_round_robin", weights = [7, 1] }
[power]
[[jobs]]
name = "application"
ranks = 8
workload = { name = "nearest_neighbor", compute = "5 us", message_size = "2 KiB" }
[[jobs]]
name = "neighbour"
ranks = 8
workload = { name = "all_to_all", compute = "5 us" }
"""
