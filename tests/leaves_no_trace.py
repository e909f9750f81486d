"""What `test_private_engine.py` starts in a network namespace of its own, where all that an engine adds can be told.

leaves_no_trace.py look        prints what is there
leaves_no_trace.py end|kill    starts a private engine, prints what was there and what is, and when its stdin ends
                               it ends the engine, or kills itself with -9
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from signal import SIGKILL

from kafka_trial.cluster.images import image_for_toxiproxy
from kafka_trial.containers.engine import client_of
from kafka_trial.containers.private_engine import private_engine

FIREWALL = """
iptables -P FORWARD DROP
iptables -N DOCKER-USER
iptables -A FORWARD -j DOCKER-USER
iptables -A DOCKER-USER -j RETURN
ip link add docker0 type bridge
ip addr add 172.17.0.1/16 dev docker0
ip link set docker0 up
"""  # what another engine has made


COMMANDS = {
    "rules": "iptables -S",
    "addresses": "ip -brief address",
    "routes": "ip route",
    "forwarding": "cat /proc/sys/net/ipv4/ip_forward",
    "mounts": "grep kafka-trial-engine /proc/mounts",
}


def seen() -> dict[str, str]:
    """Returns what an engine could leave behind in this network namespace, and among the mounts of the machine."""
    return {
        name: subprocess.run(command.split(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        for name, command in COMMANDS.items()
    }


def main(then: str) -> None:
    """Does what the argument says."""
    if then == "look":
        print(json.dumps(seen()))
        return
    for command in FIREWALL.strip().splitlines():
        subprocess.run(command.split(), check=True)
    before = seen()
    with private_engine() as host:
        client = client_of(host)
        client.networks.create("kafka-trial-test", driver="bridge")
        client.containers.run(image_for_toxiproxy(client), detach=True, network="kafka-trial-test", mem_limit="64m")
        print(json.dumps({"host": host, "before": before, "up": seen()}), flush=True)
        sys.stdin.read()
        if then == "kill":
            os.kill(os.getpid(), SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1])
