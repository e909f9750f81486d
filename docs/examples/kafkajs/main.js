// Reads orders and posts each one to the warehouse; commits what is done: at least once. kafkajs, in batches.
'use strict';

const { Kafka, logLevel } = require('kafkajs');
const { setTimeout: sleep } = require('node:timers/promises');

const POST_WITHIN_MS = 5000;
const TRY_AGAIN_AFTER_MS = 200;

let stopping = false;

const kafka = new Kafka({
  clientId: process.env.CLIENT_ID,
  brokers: process.env.BOOTSTRAP.split(','),
  logLevel: logLevel.ERROR,
  logCreator: () => ({ namespace, log }) => console.error(`${namespace}: ${log.message}`),
});
const consumer = kafka.consumer({
  groupId: process.env.GROUP,
  sessionTimeout: Number(process.env.SESSION_TIMEOUT_MS),
  rebalanceTimeout: Number(process.env.POLL_INTERVAL_MS),
  heartbeatInterval: 1000,
  maxWaitTimeInMs: 500, // no heartbeat is sent while a fetch waits for records
  maxBytesPerPartition: 64 * 1024, // a broker is asked for more when all partitions of its last answer are done
  retry: { initialRetryTime: 200, maxRetryTime: 2000, retries: 10 },
});

// Posts a record until it is taken. Returns false if the process has to stop before.
async function post(message, heartbeat) {
  const headers = { 'KT-Id': message.headers['kt-id'].toString() };
  const body = message.value ?? ''; // a record without a value is a tombstone
  while (!stopping) {
    try {
      const signal = AbortSignal.timeout(POST_WITHIN_MS);
      const answer = await fetch(process.env.EFFECTS, { method: 'POST', headers, body, signal });
      await answer.arrayBuffer(); // read to its end, so that the connection is used again
      if (answer.ok) {
        return true;
      }
      console.error(`not posted, trying again: answered ${answer.status}`);
    } catch (error) {
      console.error(`not posted, trying again: ${error.message}`);
    }
    await sleep(TRY_AGAIN_AFTER_MS);
    await heartbeat(); // throws in a rebalance: the next owner of the partition posts the record
  }
  return false;
}

async function work({ batch, resolveOffset, heartbeat, commitOffsetsIfNecessary, isRunning, isStale }) {
  for (const message of batch.messages) {
    if (!isRunning() || isStale() || !(await post(message, heartbeat))) {
      return; // what is resolved is committed, the rest is not
    }
    resolveOffset(message.offset);
    await heartbeat();
    await commitOffsetsIfNecessary();
  }
}

async function main() {
  // An error that kafkajs does not try again ends its consumer and leaves the process alive, doing nothing.
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    if (!payload.restart) {
      console.error(payload.error);
      process.exit(1);
    }
  });
  for (const signal of ['SIGTERM', 'SIGINT']) {
    process.once(signal, async () => {
      stopping = true;
      await consumer.disconnect();
      process.exit(0);
    });
  }
  await consumer.connect();
  await consumer.subscribe({ topics: [process.env.TOPIC], fromBeginning: true });
  await consumer.run({
    eachBatch: work,
    eachBatchAutoResolve: false, // else a batch that was cut short counts as done
    autoCommitInterval: 1000,
    autoCommitThreshold: 50,
    partitionsConsumedConcurrently: 3,
  });
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
