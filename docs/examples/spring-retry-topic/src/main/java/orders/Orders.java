package orders;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.kafka.annotation.BackOff;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.annotation.RetryableTopic;
import org.springframework.kafka.retrytopic.RetryTopicHeaders;
import org.springframework.kafka.retrytopic.SameIntervalTopicReuseStrategy;

/** Posts each order; one that cannot be posted yet goes to a retry topic, and others are posted meanwhile. */
@SpringBootApplication
public class Orders {
    private static final int NOT_YET_EVERY = 50;

    private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final URI effects;

    Orders(@Value("${effects}") URI effects) {
        this.effects = effects;
    }

    public static void main(String[] arguments) {
        SpringApplication.run(Orders.class, arguments);
    }

    /** Tries an order five times, a second apart; what still fails then lies in the topic "-dlt". */
    @RetryableTopic(
            attempts = "5",
            backOff = @BackOff(delay = 1000),
            sameIntervalTopicReuseStrategy = SameIntervalTopicReuseStrategy.SINGLE_TOPIC,
            numPartitions = "3",
            replicationFactor = "3")
    @KafkaListener(topics = "${topic}")
    void take(ConsumerRecord<String, byte[]> order) throws IOException, InterruptedException {
        boolean isFirst = order.headers().lastHeader(RetryTopicHeaders.DEFAULT_HEADER_ATTEMPTS) == null;
        if (isFirst && order.offset() % NOT_YET_EVERY == 0) {
            throw new IOException("not yet: its invoice is not known");
        }
        HttpRequest request = HttpRequest.newBuilder(effects)
                .timeout(Duration.ofSeconds(5))
                .POST(BodyPublishers.ofByteArray(order.value()))
                .build();
        int status = http.send(request, BodyHandlers.discarding()).statusCode();
        if (status / 100 != 2) {
            throw new IOException("not posted: status " + status);
        }
    }
}
