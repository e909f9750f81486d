"""Reads orders and posts each one to the warehouse; commits what is done: at least once. One event loop, aiokafka."""

import asyncio
import logging
import os
import signal
import sys

import aiohttp
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError

RECORDS_MAX = 100  # in one batch: a rebalance waits until it is done
POST_WITHIN_S = 5
TRY_AGAIN_AFTER_S = 0.2
COMMIT_WITHIN_S = 5

log = logging.getLogger("orders")


class Orders(ConsumerRebalanceListener):
    def __init__(self, consumer, http):
        self.consumer = consumer
        self.http = http
        self.stopping = asyncio.Event()
        self.in_hand = asyncio.Lock()  # held while a batch is worked on and committed
        self.owned = set()
        self.positions = {}  # partition → the next offset, of what is done and not committed yet

    async def on_partitions_revoked(self, revoked):
        """Waits for the batch in hand. aiokafka joins the group again after this has returned."""
        async with self.in_hand:
            self.give_up()

    async def on_partitions_assigned(self, assigned):
        self.owned = set(assigned)

    def give_up(self):
        self.owned = set()
        self.positions.clear()

    async def run(self):
        stopping = asyncio.create_task(self.stopping.wait())
        while not self.stopping.is_set():
            polling = asyncio.create_task(self.consumer.getmany(timeout_ms=500, max_records=RECORDS_MAX))
            await asyncio.wait({polling, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not polling.done():
                polling.cancel()  # getmany waits for the end of a rebalance, whatever its timeout
                break
            async with self.in_hand:
                # What was revoked between the poll and here is left to its next owner.
                batches = {part: records for part, records in polling.result().items() if part in self.owned}
                await asyncio.gather(*(self.work(part, records) for part, records in batches.items()))
                await self.commit()

    async def work(self, part, records):
        """Posts the records of one partition in their order; the partitions of a batch are worked on side by side."""
        for record in records:
            if not await self.post(record):
                return
            self.positions[part] = record.offset + 1

    async def post(self, record):
        """Posts a record until it is taken. Returns False if the process has to stop before."""
        headers = {"KT-Id": dict(record.headers)["kt-id"].decode()}
        while not self.stopping.is_set():
            try:
                async with self.http.post(os.environ["EFFECTS"], data=record.value or b"", headers=headers) as answer:
                    answer.raise_for_status()
                    return True
            except (aiohttp.ClientError, TimeoutError) as error:
                log.warning("not posted, trying again: %r", error)
                await asyncio.sleep(TRY_AGAIN_AFTER_S)
        return False

    async def commit(self):
        """Commits the positions. They are kept until that succeeds, or until the partitions have gone."""
        if not self.positions:
            return
        try:
            # By itself, commit() tries for as long as the coordinator is away.
            await asyncio.wait_for(self.consumer.commit(dict(self.positions)), COMMIT_WITHIN_S)
        except (CommitFailedError, IllegalStateError) as error:
            log.warning("not committed, the partitions have gone: %r", error)
            self.give_up()
        except (KafkaError, TimeoutError) as error:
            log.warning("not committed, trying again with the next batch: %r", error)
        else:
            self.positions.clear()


async def main():
    consumer = AIOKafkaConsumer(
        bootstrap_servers=os.environ["BOOTSTRAP"].split(","),
        group_id=os.environ["GROUP"],
        client_id=os.environ["CLIENT_ID"],
        session_timeout_ms=int(os.environ["SESSION_TIMEOUT_MS"]),
        heartbeat_interval_ms=int(os.environ["SESSION_TIMEOUT_MS"]) // 5,
        max_poll_interval_ms=int(os.environ["POLL_INTERVAL_MS"]),
        rebalance_timeout_ms=int(os.environ["POLL_INTERVAL_MS"]),  # by default as long as the session
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=POST_WITHIN_S)) as http:
        orders = Orders(consumer, http)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, orders.stopping.set)
        await consumer.start()
        try:
            consumer.subscribe([os.environ["TOPIC"]], listener=orders)
            await orders.run()
        finally:
            await consumer.stop()  # leaves the group


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    asyncio.run(main())
