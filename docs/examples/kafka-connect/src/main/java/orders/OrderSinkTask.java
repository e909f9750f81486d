package orders;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.Collection;
import java.util.Map;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** Posts in `put`, so that all that was put is posted when Connect commits: at least once. */
public class OrderSinkTask extends SinkTask {
    private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private URI effects;

    @Override
    public void start(Map<String, String> settings) {
        effects = URI.create(settings.get("effects"));
    }

    @Override
    public void put(Collection<SinkRecord> orders) {
        for (SinkRecord order : orders) {
            post((byte[]) order.value());
        }
    }

    /** Posts an order. After a RetriableException Connect puts the same records again; any other ends the task. */
    private void post(byte[] order) {
        HttpRequest request = HttpRequest.newBuilder(effects)
                .timeout(Duration.ofSeconds(5))
                .POST(BodyPublishers.ofByteArray(order))
                .build();
        try {
            int status = http.send(request, BodyHandlers.discarding()).statusCode();
            if (status / 100 != 2) {
                throw new RetriableException("not posted: status " + status);
            }
        } catch (IOException error) {
            throw new RetriableException("not posted", error);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new RetriableException("not posted", interrupted);
        }
    }

    @Override
    public void stop() {}

    @Override
    public String version() {
        return "1";
    }
}
