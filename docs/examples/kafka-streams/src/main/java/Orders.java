import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;

/** Posts each order. Kafka Streams commits what its topology has taken in, so each post is awaited: at least once. */
public class Orders {
    private static final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private static final URI effects = URI.create(System.getenv("EFFECTS"));
    private static volatile boolean stopping;

    public static void main(String[] arguments) throws InterruptedException {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(System.getenv("TOPIC"), Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
                .foreach((key, order) -> postUntilTaken(order));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings());
        // A thread that fails is replaced, and its records since the last commit come again. By default the client
        // would shut down, and the process live on without it.
        streams.setUncaughtExceptionHandler(error -> stopping
                ? StreamThreadExceptionResponse.SHUTDOWN_CLIENT
                : StreamThreadExceptionResponse.REPLACE_THREAD);
        CountDownLatch closed = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> { // on SIGTERM
            stopping = true;
            streams.close(CloseOptions.timeout(Duration.ofSeconds(20))
                    .withGroupMembershipOperation(GroupMembershipOperation.LEAVE_GROUP));
            closed.countDown();
        }));
        streams.start();
        closed.await();
    }

    static Properties settings() {
        Properties settings = new Properties();
        settings.put("application.id", System.getenv("GROUP"));
        settings.put("bootstrap.servers", System.getenv("BOOTSTRAP"));
        settings.put("client.id", System.getenv("CLIENT_ID"));
        settings.put("state.dir", System.getenv("STATE"));
        settings.put("commit.interval.ms", "1000");
        settings.put("main.consumer.session.timeout.ms", System.getenv("SESSION_TIMEOUT_MS"));
        settings.put("main.consumer.max.poll.interval.ms", System.getenv("POLL_INTERVAL_MS"));
        settings.put("main.consumer.max.poll.records", "100");
        return settings;
    }

    static void postUntilTaken(byte[] order) {
        HttpRequest request = HttpRequest.newBuilder(effects)
                .timeout(Duration.ofSeconds(5))
                .POST(BodyPublishers.ofByteArray(order))
                .build();
        try {
            do {
                try {
                    int status = http.send(request, BodyHandlers.discarding()).statusCode();
                    if (status / 100 == 2) {
                        return;
                    }
                    System.err.println("not posted, trying again: status " + status);
                } catch (IOException error) {
                    System.err.println("not posted, trying again: " + error);
                }
                Thread.sleep(200);
            } while (!stopping);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        throw new IllegalStateException("stopped before the order was posted"); // nor is it committed
    }
}
