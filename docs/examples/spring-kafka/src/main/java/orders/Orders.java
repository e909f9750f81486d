package orders;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.listener.DefaultErrorHandler;
import org.springframework.util.backoff.FixedBackOff;

/** Posts each order. The container commits the offsets of a poll when all of its records are posted: at least once. */
@SpringBootApplication
public class Orders {
    private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final URI effects;

    Orders(@Value("${effects}") URI effects) {
        this.effects = effects;
    }

    public static void main(String[] arguments) {
        SpringApplication.run(Orders.class, arguments);
    }

    @KafkaListener(topics = "${topic}")
    void post(byte[] order) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(effects)
                .timeout(Duration.ofSeconds(5))
                .POST(BodyPublishers.ofByteArray(order))
                .build();
        int status = http.send(request, BodyHandlers.discarding()).statusCode();
        if (status / 100 != 2) {
            throw new IOException("not posted: status " + status);
        }
    }

    /** Tries a record until it is posted. Spring's own error handler tries ten times, logs the error, and goes on. */
    @Bean
    static DefaultErrorHandler untilPosted() {
        return new DefaultErrorHandler(new FixedBackOff(1000, FixedBackOff.UNLIMITED_ATTEMPTS));
    }
}
