import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.TreeMap;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.ConfigKey;

/** Prints every public setting of one Kafka version: role, name, type, importance, default, valid values; by tabs. */
public class Defaults {
    /** Each role, and the class that defines its settings; of several the first that there is. */
    private static final String[][] CLASSES = {
        {"consumer", "org.apache.kafka.clients.consumer.ConsumerConfig"},
        {"producer", "org.apache.kafka.clients.producer.ProducerConfig"},
        {"admin", "org.apache.kafka.clients.admin.AdminClientConfig"},
        {"topic", "org.apache.kafka.storage.internals.log.LogConfig"},
        {"group", "org.apache.kafka.coordinator.group.GroupConfig"},
        {"broker", "org.apache.kafka.server.config.AbstractKafkaConfig", "kafka.server.KafkaConfig"},
    };

    public static void main(String[] words) throws Exception {
        for (String[] row : CLASSES) {
            for (ConfigKey key : new TreeMap<>(keys(row)).values()) {
                if (!key.internalConfig) {
                    String[] told = {row[0], key.name, key.type.toString(), key.importance.toString(), value(key), valid(key)};
                    System.out.println(String.join("\t", told));
                }
            }
        }
    }

    private static Map<String, ConfigKey> keys(String[] row) throws Exception {
        for (int number = 1; number < row.length; number++) {
            ConfigDef found = definition(row[number]);
            if (found != null) {
                return found.configKeys();
            }
        }
        return Map.of(); // this version has no such settings
    }

    private static ConfigDef definition(String name) throws Exception {
        Class<?> owner;
        try {
            owner = Class.forName(name);
        } catch (ClassNotFoundException error) {
            return null;
        }
        for (Method method : owner.getMethods()) {
            if (method.getName().matches("configDef|configDefCopy") && method.getParameterCount() == 0) {
                return (ConfigDef) method.invoke(null);
            }
        }
        for (Field field : owner.getFields()) {
            if (field.getName().equals("CONFIG_DEF")) {
                return (ConfigDef) field.get(null);
            }
        }
        return null;
    }

    private static String value(ConfigKey key) {
        if (!key.hasDefault()) {
            return "(required)";
        }
        String told = ConfigDef.convertToString(key.defaultValue, key.type);
        return told == null ? "(null)" : line(told);
    }

    private static String valid(ConfigKey key) {
        String told = key.validator == null ? "" : line(key.validator.toString());
        return told.matches(".*[$@].*") ? "" : told; // Java's name of an object says nothing
    }

    private static String line(String text) {
        return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n");
    }
}
