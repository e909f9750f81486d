#!/bin/sh
# Java with Kafka's class path and the options of the environment, as Kafka's own script has it: KAFKA_HEAP_OPTS,
# KAFKA_JVM_PERFORMANCE_OPTS, KAFKA_GC_LOG_OPTS, KAFKA_JMX_OPTS, KAFKA_LOG4J_OPTS, KAFKA_OPTS, KAFKA_JMX_PORT, LOG_DIR.
# ARCHIVE names the class-data archive that is used where it is there.
for jar in /opt/kafka/libs/*.jar; do
  CLASSPATH="${CLASSPATH:+$CLASSPATH:}$jar"
done
if [ -e /etc/kafka/docker/log4j2.yaml ]; then
  logging=-Dlog4j2.configurationFile=/opt/kafka/config/tools-log4j2.yaml
else
  logging=-Dlog4j.configuration=file:/opt/kafka/config/tools-log4j.properties
fi
jmx=${KAFKA_JMX_OPTS-}
if [ -n "${KAFKA_JMX_PORT-}" ]; then
  : "${jmx:=-Dcom.sun.management.jmxremote=true -Dcom.sun.management.jmxremote.authenticate=false -Dcom.sun.management.jmxremote.ssl=false}"
  jmx="$jmx -Djava.rmi.server.hostname=${KAFKA_JMX_HOSTNAME:-$(hostname -i | cut -d ' ' -f 1)}"
  jmx="$jmx -Dcom.sun.management.jmxremote.local.only=false"
  jmx="$jmx -Dcom.sun.management.jmxremote.port=$KAFKA_JMX_PORT -Dcom.sun.management.jmxremote.rmi.port=$KAFKA_JMX_PORT"
fi
archive=
if [ -n "${ARCHIVE-}" ] && [ -e "/opt/kafka/$ARCHIVE.jsa" ]; then
  archive="-XX:SharedArchiveFile=/opt/kafka/$ARCHIVE.jsa -Xlog:cds=off -Xlog:cds+dynamic=off"
fi
performance='-server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35'
performance="$performance -XX:+ExplicitGCInvokesConcurrent -XX:MaxInlineLevel=15 -Djava.awt.headless=true"
# Each of these is several words.
# shellcheck disable=SC2086
exec java ${KAFKA_HEAP_OPTS:--Xmx256M} ${KAFKA_JVM_PERFORMANCE_OPTS:-$performance} $archive ${KAFKA_GC_LOG_OPTS-} $jmx \
  "-Dkafka.logs.dir=${LOG_DIR:-/opt/kafka/logs}" ${KAFKA_LOG4J_OPTS:-$logging} -cp "$CLASSPATH" ${KAFKA_OPTS-} "$@"
