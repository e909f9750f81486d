import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/**
 * Kafka's own consumer, which says how much memory it took: idle first, then while it drains a backlog.
 *
 * What it holds is what is left after a collection: a thread collects all the time. To that the buffers outside of the
 * heap are added, through which a socket is read. Arguments: bootstrap, empty topic, full topic, partitions, records
 * in the full one, and NAME=VALUE for each setting of the consumer. It prints one line of JSON.
 */
public class MemoryProbe {
    private static final long IDLE_MS = 3000;
    private static final long WITHIN_MS = 120_000;
    private static final long WORK_MS = 60; // so long the records of a poll are held, at least a collection falls into it

    private static volatile long peak;
    private static volatile long outside;
    private static ConsumerRecords<byte[], byte[]> held;

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", "memory-probe");
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        String bytes = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
        settings.put("key.deserializer", bytes);
        settings.put("value.deserializer", bytes);
        for (int place = 5; place < arguments.length; place++) {
            String[] setting = arguments[place].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        Thread collecting = new Thread(MemoryProbe::collect);
        collecting.setDaemon(true);
        collecting.start();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            measure(consumer, arguments);
        }
    }

    private static void measure(KafkaConsumer<byte[], byte[]> consumer, String[] arguments) throws Exception {
        consumer.assign(partitions(arguments[1], arguments[3]));
        drain(consumer, Long.MAX_VALUE, IDLE_MS);
        long base = peak;
        consumer.assign(partitions(arguments[2], arguments[3]));
        consumer.seekToBeginning(consumer.assignment());
        long taken = drain(consumer, Long.parseLong(arguments[4]), WITHIN_MS);
        System.out.printf(
            "{\"base_bytes\":%d,\"peak_bytes\":%d,\"outside_bytes\":%d,\"resident_bytes\":%d,\"taken\":%d}%n",
            base, peak, outside, resident(), taken);
    }

    private static long drain(KafkaConsumer<byte[], byte[]> consumer, long records, long forMs) throws Exception {
        long taken = 0;
        long until = System.currentTimeMillis() + forMs;
        while (taken < records && System.currentTimeMillis() < until) {
            held = consumer.poll(Duration.ofMillis(200));
            taken += held.count();
            if (held.count() > 0 && taken < 100_000_000L / size(held)) { // enough of them: a backlog of small ones has many polls
                Thread.sleep(WORK_MS);
            }
        }
        return taken;
    }

    private static int size(ConsumerRecords<byte[], byte[]> records) {
        return records.iterator().next().value().length;
    }

    private static void collect() {
        while (true) {
            System.gc();
            long heap = ManagementFactory.getMemoryPoolMXBeans().stream()
                .filter(pool -> pool.getType() == MemoryType.HEAP)
                .mapToLong(pool -> pool.getCollectionUsage().getUsed())
                .sum();
            long direct = ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
                .filter(pool -> pool.getName().equals("direct"))
                .mapToLong(BufferPoolMXBean::getMemoryUsed)
                .sum();
            outside = Math.max(outside, direct);
            peak = Math.max(peak, heap + direct);
        }
    }

    private static long resident() throws Exception {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmHWM:")) {
                return Long.parseLong(line.replaceAll("\\D", "")) * 1024;
            }
        }
        return 0;
    }

    private static List<TopicPartition> partitions(String topic, String count) {
        return IntStream.range(0, Integer.parseInt(count)).mapToObj(number -> new TopicPartition(topic, number)).toList();
    }
}
