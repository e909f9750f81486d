package orders;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;

/** Posts each order to the URL `effects`. */
public class OrderSink extends SinkConnector {
    private Map<String, String> settings;

    @Override
    public void start(Map<String, String> settings) {
        this.settings = settings;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int tasksMax) {
        return Collections.nCopies(tasksMax, settings);
    }

    @Override
    public Class<? extends Task> taskClass() {
        return OrderSinkTask.class;
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef().define("effects", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "where to post");
    }

    @Override
    public void stop() {}

    @Override
    public String version() {
        return "1";
    }
}
