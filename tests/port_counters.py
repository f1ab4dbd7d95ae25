"""Port counters as perfquery, ibqueryerrors and an exporter for Prometheus print them."""

PERFQUERY = """# Port extended counters: Lid 72 port 1 (CapMask: 0x5300 CapMask2: 0x0000002)
PortSelect:......................1
CounterSelect:...................0x0000
PortXmitData:....................1000
PortRcvData:.....................500
PortXmitPkts:....................40
PortRcvPkts:.....................30
CounterSelect2:..................0x00000000
SymbolErrorCounter:..............2
PortXmitWait:....................250

# Port extended counters: Lid 9 port 4 (CapMask: 0x5300 CapMask2: 0x0000002)
PortSelect:......................4
PortXmitData:....................500
PortRcvData:.....................1000
PortXmitWait:....................7000
"""
BASIC = """# Port counters: Lid 9 port 4 (CapMask: 0x1200)
PortSelect:......................4
CounterSelect:...................0x0000
SymbolErrorCounter:..............0
PortXmitData:....................4294967295
PortRcvData:.....................1000
PortXmitPkts:....................12
PortRcvPkts:.....................13
PortXmitWait:....................7000
"""
IBQUERYERRORS = """Data Counters for 0x3048c749cd0000 "MT25408 ConnectX Mellanox Technologies"
   GUID 0x3048c749cd0000 port 1: [PortXmitData == 1000 (3.906KB)] [PortRcvData == 500 (1.953KB)] [PortXmitPkts == 40]
Errors for "Voltaire 4036 - 36 QDR ports switch"
   GUID 0x8f10500200b50 port ALL: [PortXmitWait == 7000]
   GUID 0x8f10500200b50 port 4: [PortXmitWait == 7000] [PortXmitDiscards == 1]
## Summary: 100 nodes checked, 1 bad nodes found
##          260 ports checked, 1 ports have errors beyond threshold
"""
PROMETHEUS = r"""# HELP infiniband_switch_info Infiniband switch information
# TYPE infiniband_switch_info gauge
infiniband_switch_info{guid="0x0008f10500200b50",lid="9",switch="a \"b\""} 1
infiniband_switch_port_transmit_data_bytes_total{guid="0x0008f10500200b50",port="4"} 2000
infiniband_switch_port_transmit_wait_total{guid="0x0008f10500200b50",port="4"} 7e+03
infiniband_hca_port_transmit_data_bytes_total{guid="0x003048c749cd0000",port="1",switch="x"} 4000
node_infiniband_port_data_transmitted_bytes_total{device="mlx5_1",instance="node1:9100",port="1"} 8e+03 1700000000000
node_load1{instance="node1:9100"} 0.3
"""
PYTHON_EXPORTER = """# HELP infiniband_portxmitdata_total Total number of data octets, divided by 4 (lanes)
# TYPE infiniband_portxmitdata_total counter
infiniband_portxmitdata_total{component="switch",local_guid="0x8f10500200b50",local_name="s",local_port="4"} 5.149e+12
infiniband_portxmitdata_total{component="ca",local_guid="0x3048c749cd0000",local_name="h mlx5_0",local_port="1"} 1000.0
# TYPE infiniband_portxmitdata_created gauge
infiniband_portxmitdata_created{component="ca",local_guid="0x003048c749cd0000",local_port="1"} 1.7e+09
# TYPE infiniband_portxmitwait_total counter
infiniband_portxmitwait_total{component="switch",local_guid="0x8f10500200b50",local_name="s",local_port="4"} 7000.0
# TYPE infiniband_scrape_ok gauge
infiniband_scrape_ok 1.0
"""
SYSFS = """n1: /sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data:2000
n1: /sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data:1000
n1: /sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_wait:N/A (no PMA)
n1: /sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error:2
n1: /sys/class/infiniband/mlx5_0/ports/1/rate:100 Gb/sec (4X EDR)
n1: /sys/class/infiniband/mlx5_0/ports/1/lid:0x48
n1: /sys/class/infiniband/mlx5_0/node_guid:0030:48c7:49cd:0000
"""
