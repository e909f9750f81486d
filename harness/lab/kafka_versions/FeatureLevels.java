import java.lang.reflect.Method;
import java.util.Map;
import java.util.TreeMap;

/**
 * Prints what one Kafka version says of its features, by tabs: each metadata version that is ready for production and
 * whether it changed the metadata, each such level of other features, and which levels its brokers support.
 *
 * Classes and methods were renamed between versions, and some are not public: all is asked by name.
 */
public class FeatureLevels {
    private static final String COMMON = "org.apache.kafka.server.common.";

    public static void main(String[] words) throws Exception {
        Class<?> metadata = Class.forName(COMMON + "MetadataVersion");
        int newest = number(ask(metadata, null, "latestProduction"), "featureLevel");
        for (Object one : metadata.getEnumConstants()) {
            int level = number(one, "featureLevel");
            if (level > 0 && level <= newest) {
                line("metadata", level, ask(metadata, one, "version"), ask(metadata, one, "didMetadataChange"));
            }
        }
        Map<?, ?> supported = supported();
        for (Object feature : features()) {
            Object name = ask(feature, "featureName");
            for (Object one : supported.containsKey(name) ? (Object[]) ask(feature, "featureVersions") : new Object[0]) {
                int level = number(one, "featureLevel");
                if (level > 0 && level <= number(feature, "latestProduction")) {
                    Object needs = new TreeMap<>((Map<?, ?>) ask(one, "dependencies"));
                    line("level", name, level, ask(ask(one, "bootstrapMetadataVersion"), "version"), needs);
                }
            }
        }
        for (Map.Entry<?, ?> one : new TreeMap<>(supported).entrySet()) {
            line("range", one.getKey(), number(one.getValue(), "min"), number(one.getValue(), "max"));
        }
    }

    /** Returns by feature the levels that a node supports which turned nothing unstable on. */
    private static Map<?, ?> supported() throws Exception {
        for (Method method : Class.forName("org.apache.kafka.controller.QuorumFeatures").getMethods()) {
            if (method.getName().matches("defaultFeatureMap|defaultSupportedFeatureMap")) {
                return (Map<?, ?>) method.invoke(null, false);
            }
        }
        throw new IllegalStateException("QuorumFeatures does not say which features a node supports");
    }

    private static Object[] features() {
        for (String name : new String[] {"Feature", "Features"}) {
            try {
                Object[] all = Class.forName(COMMON + name).getEnumConstants();
                if (all != null) { // 3.7 has another class of that name
                    return all;
                }
            } catch (ClassNotFoundException error) {
                continue; // the other name, or a version that has but metadata.version
            }
        }
        return new Object[0];
    }

    private static int number(Object of, String name) throws Exception {
        return ((Short) ask(of, name)).intValue();
    }

    private static Object ask(Object of, String name) throws Exception {
        return ask(of instanceof Enum ? ((Enum<?>) of).getDeclaringClass() : of.getClass(), of, name);
    }

    private static Object ask(Class<?> type, Object of, String name) throws Exception {
        Method method = type.getDeclaredMethod(name);
        method.setAccessible(true);
        return method.invoke(of);
    }

    private static void line(Object... words) {
        StringBuilder told = new StringBuilder();
        for (Object word : words) {
            told.append(told.length() == 0 ? "" : "\t").append(word);
        }
        System.out.println(told);
    }
}
