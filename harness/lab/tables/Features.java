import java.lang.reflect.Method;

/**
 * Prints what the classes of a Kafka version say of its features, tab-separated, a line for each level of production:
 * <pre>metadata.version LEVEL NAME CHANGES_METADATA</pre> and <pre>FEATURE LEVEL DEFAULT_METADATA_VERSION NEEDS</pre>
 * They were renamed on the way, and some of their methods are not public: all is asked by name.
 */
public final class Features {
    private static final String PLACE = "org.apache.kafka.server.common.";

    public static void main(String[] arguments) throws Exception {
        Class<?> versions = Class.forName(PLACE + "MetadataVersion");
        int highest = ((Short) told(versions.getMethod("latestProduction").invoke(null), "featureLevel")).intValue();
        for (Object one : versions.getEnumConstants()) {
            int level = ((Short) told(one, "featureLevel")).intValue();
            if (level > 0 && level <= highest) {
                line("metadata.version", level, told(one, "version"), told(one, "didMetadataChange"));
            }
        }
        for (Object feature : features()) {
            String name = told(feature, "featureName").toString();
            int latest = ((Short) told(feature, "latestProduction")).intValue();
            for (Object one : (Object[]) told(feature, "featureVersions")) {
                int level = ((Short) told(one, "featureLevel")).intValue();
                if (level <= latest && !name.startsWith("test.") && !name.startsWith("unit.test.")) {
                    line(name, level, told(one, "bootstrapMetadataVersion"), told(one, "dependencies"));
                }
            }
        }
    }

    private static Object[] features() {
        for (String name : new String[] {"Feature", "Features"}) {
            try {
                Object[] all = Class.forName(PLACE + name).getEnumConstants();
                if (all != null) { // in 3.7 it is another class of that name
                    return all;
                }
            } catch (ClassNotFoundException missing) {
                // the other name, or none
            }
        }
        return new Object[0];
    }

    private static Object told(Object of, String name) throws Exception {
        Class<?> type = of instanceof Enum ? ((Enum<?>) of).getDeclaringClass() : of.getClass();
        Method method = type.getDeclaredMethod(name);
        method.setAccessible(true);
        return method.invoke(of);
    }

    private static void line(String name, int level, Object first, Object second) {
        System.out.println(String.join("\t", name, Integer.toString(level), first.toString(), second.toString()));
    }
}
