"""The order that takes a broker out of a cluster for good (UnregisterBroker v0, KIP-631): no client library has it.

A broker that was shut down stays registered, fenced, until somebody orders this. Any broker takes it and hands it to
the active controller.
"""

from __future__ import annotations

import struct
from typing import Final

from kafka_trial.kafka_protocol.cluster_queries import refuse
from kafka_trial.kafka_protocol.connection import Connection, NoAnswerError
from kafka_trial.kafka_protocol.primitives import Reader

BROKER_ID_NOT_REGISTERED: Final = 102
_UNREGISTER_BROKER: Final = (64, 0)


def unregister_broker(connection: Connection, broker: int) -> bool:
    """Takes a broker out of the cluster; False: it was not in it.

    Raises:
        NoAnswerError: the order was refused, or nobody answered.
    """
    try:
        connection.ask(_UNREGISTER_BROKER, struct.pack(">i", broker) + b"\0", _unregistered, flexible=True)
    except NoAnswerError as error:
        if error.code != BROKER_ID_NOT_REGISTERED:
            raise
        return False
    return True


def _unregistered(reader: Reader) -> None:
    reader.int32()  # throttle time
    code, message = reader.int16(), reader.nullable_string()
    refuse("unregistering a broker", code, message)
