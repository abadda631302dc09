// One application of Kafka Streams for a row of the comparison (pybench.streams_application is the same in Python).
//
// Arguments: key=value. "row", "input", "output", "records" and "warm.up" are of the row, all others are settings.
// With "warm.up" another application processes that many records first, so that the JIT compiler has seen the code.
// Prints {"event": "running"}, then {"event": "done", ...}, each in a line. Ends at the end of standard input.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;

public class StreamsPerf {
    static final ObjectMapper JSON = new ObjectMapper();
    static final OperatingSystemMXBean PROCESS =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    public static void main(String[] arguments) throws Exception {
        Map<String, String> row = new TreeMap<>();
        Properties settings = new Properties();
        settings.put("group.protocol", "streams");
        for (String argument : arguments) {
            int at = argument.indexOf('=');
            String key = argument.substring(0, at);
            if (key.equals("row") || key.equals("input") || key.equals("output")
                || key.equals("records") || key.equals("warm.up")) {
                row.put(key, argument.substring(at + 1));
            } else {
                settings.put(key, argument.substring(at + 1));
            }
        }
        long records = Long.parseLong(row.get("records"));
        long warmUp = Long.parseLong(row.get("warm.up"));
        if (warmUp > 0) {
            Properties other = new Properties();
            other.putAll(settings);
            other.put("application.id", settings.getProperty("application.id") + "-warm-up");
            new Application(row.get("row"), row.get("input"), row.get("output") + "-warm-up", other).process(warmUp);
        }
        Application counted = new Application(row.get("row"), row.get("input"), row.get("output"), settings);
        Map<String, Number> figures;
        if (row.get("row").equals("restore")) {
            figures = counted.restore(records);
        } else if (records > 0) {
            figures = counted.process(records);
        } else {
            figures = counted.serve();
        }
        report(JSON.createObjectNode().put("event", "done").setAll(JSON.<ObjectNode>valueToTree(figures)));
        awaitEndOfInput();
    }

    static void report(JsonNode event) {
        System.out.println(event);
        System.out.flush();
    }

    static void awaitEndOfInput() throws IOException {
        while (System.in.read() >= 0) {
        }
    }

    static class Application implements StateRestoreListener {
        final KafkaStreams streams;
        final CountDownLatch running = new CountDownLatch(1);
        volatile long restored;
        volatile long restoreBegunMs;
        volatile long restoreEndedMs;

        Application(String row, String input, String output, Properties settings) throws Exception {
            streams = new KafkaStreams(topology(row, input, output).build(), settings);
            streams.setGlobalStateRestoreListener(this);
            streams.setUncaughtExceptionHandler(error -> {
                error.printStackTrace();
                System.exit(1);
                return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
            });
            streams.setStateListener((now, before) -> {
                if (now == KafkaStreams.State.RUNNING) {
                    running.countDown();
                }
            });
            streams.start();
        }

        Map<String, Number> process(long records) throws Exception {
            Metric processed = processed();
            while (count(processed) == 0) {
                Thread.sleep(2);
            }
            long begunMs = System.currentTimeMillis();
            long cpu = PROCESS.getProcessCpuTime();
            while (count(processed) < records) {
                Thread.sleep(5);
            }
            long total = count(processed);
            streams.close(Duration.ofSeconds(60));
            double used = (PROCESS.getProcessCpuTime() - cpu) / 1e9;
            return Map.of("begun_ms", begunMs, "processed", total, "application_cpu_s", used);
        }

        Map<String, Number> restore(long records) throws Exception {
            running.await();
            ReadOnlyKeyValueStore<String, byte[]> store = streams.store(
                StoreQueryParameters.fromNameAndType("store", QueryableStoreTypes.keyValueStore()));
            long found = 0;
            for (long number = 0; number < records; number += Math.max(1, records / 1000)) {
                String key = String.format("k%09d", number);
                byte[] value = store.get(key);
                if (value != null && new String(value, StandardCharsets.UTF_8).startsWith(key)) {
                    found++;
                }
            }
            streams.close(Duration.ofSeconds(60));
            double seconds = (restoreEndedMs - restoreBegunMs) / 1e3;
            return Map.of("restored", restored, "found", found, "seconds", seconds);
        }

        Map<String, Number> serve() throws Exception {
            running.await();
            report(JSON.createObjectNode().put("event", "running"));
            awaitEndOfInput();
            streams.close(Duration.ofSeconds(60));
            return Map.of();
        }

        Metric processed() throws InterruptedException {
            while (true) {
                for (Metric metric : streams.metrics().values()) {
                    if (metric.metricName().name().equals("process-total")
                        && metric.metricName().group().equals("stream-thread-metrics")) {
                        return metric;
                    }
                }
                Thread.sleep(5);
            }
        }

        static long count(Metric metric) {
            return ((Number) metric.metricValue()).longValue();
        }

        @Override
        public void onRestoreStart(TopicPartition partition, String store, long from, long to) {
            restoreBegunMs = System.currentTimeMillis();
        }

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long end, long count) {
        }

        @Override
        public void onRestoreEnd(TopicPartition partition, String store, long total) {
            restoreEndedMs = System.currentTimeMillis();
            restored = total;
        }
    }

    static StreamsBuilder topology(String row, String input, String output) {
        StreamsBuilder builder = new StreamsBuilder();
        Serde<String> text = Serdes.String();
        Serde<byte[]> bytes = Serdes.ByteArray();
        Serde<JsonNode> json = Serdes.serdeFrom((topic, value) -> encode(value), (topic, data) -> decode(data));
        switch (row) {
            case "stateless" -> builder.stream(input, Consumed.with(text, json))
                .filter((key, value) -> value.get("amount").asLong() > 500)
                .mapValues(StreamsPerf::doubled)
                .to(output, Produced.with(text, json));
            case "map" -> builder.stream(input, Consumed.with(text, json))
                .mapValues(StreamsPerf::doubled)
                .to(output, Produced.with(text, json));
            case "count" -> builder.stream(input, Consumed.with(text, bytes))
                .groupByKey()
                .count(Materialized.as("store"))
                .toStream()
                .to(output, Produced.with(text, Serdes.Long()));
            case "windows" -> builder.stream(input, Consumed.with(text, json))
                .groupByKey()
                .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(60)).advanceBy(Duration.ofSeconds(20)))
                .aggregate(
                    () -> 0L, (key, value, sum) -> sum + value.get("amount").asLong(),
                    Materialized.with(text, Serdes.Long()))
                .toStream()
                .to(output, Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 60_000), Serdes.Long()));
            case "restore" -> builder.table(input, Consumed.with(text, bytes), Materialized.as("store"));
            default -> throw new IllegalArgumentException("unknown row " + row);
        }
        return builder;
    }

    static JsonNode doubled(JsonNode value) {
        return ((ObjectNode) value).deepCopy().put("amount", value.get("amount").asLong() * 2);
    }

    static byte[] encode(JsonNode value) {
        try {
            return JSON.writeValueAsBytes(value);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    static JsonNode decode(byte[] data) {
        try {
            return data == null ? null : JSON.readTree(data);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
