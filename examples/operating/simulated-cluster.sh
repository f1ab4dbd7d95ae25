# What the first three commands of docs/operating.md print on a cluster: its dump, and counters 3 ms apart.
#   cd examples/operating && sh simulated-cluster.sh

set -e
fairlane fabric import ../../tests/data/fabrics/x5.ibnetdiscover --node-name-map names.map -o cluster.fabric.json
fairlane fabric export cluster.fabric.json --ibnetdiscover -o cluster.ibnetdiscover
fairlane run cluster.toml --duration "1 ms" --no-isolated --quiet -o before
fairlane run cluster.toml --duration "4 ms" --no-isolated --quiet -o now
fairlane counters export before --guids cluster.fabric.json -o before.counters
fairlane counters export now --guids cluster.fabric.json -o now.counters
cp before.counters/perfquery.txt before.txt
cp now.counters/perfquery.txt now.txt
