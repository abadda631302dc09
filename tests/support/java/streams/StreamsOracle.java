import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BiFunction;
import java.util.regex.Pattern;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.AutoOffsetReset;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.kstream.internals.NamedInternal;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.TimestampExtractor;
import org.apache.kafka.streams.processor.TopicNameExtractor;
import org.apache.kafka.streams.processor.api.*;
import org.apache.kafka.streams.state.*;
import org.apache.kafka.streams.test.TestRecord;

/**
 * Topologies of Kafka Streams for tests to compare with. A question is a line of JSON, and so is a response.
 *
 * {"do": "describe", "topology": [step, ...], "config": {}} returns "description" and "branches". {"do": "group", ...}
 * returns the "topology" that a member of a streams group sends. {"do": "metadata"} with "time" and "numbers" returns the
 * "text" that is committed with an offset. {"do": "run", ...}
 * with "inputs" and "stores" runs the topology in Kafka's test driver and returns "produced", "stores", "seen" and
 * "printed". The module docstring of `tests/support/streams_spec.py` describes steps and inputs. The functions that a
 * step names exist in Python too, in `tests/support/streams_functions.py`. An exception becomes "error" and "message".
 */
@SuppressWarnings({"unchecked", "rawtypes", "deprecation"})
public class StreamsOracle {
    static final ObjectMapper JSON = new ObjectMapper();
    /** Where the RocksDB stores are: the first argument of the program. */
    static String stateDirectory;

    public static void main(String[] arguments) throws Exception {
        stateDirectory = arguments[0];
        PrintStream out = System.out;
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            JsonNode question = JSON.readTree(line);
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            System.setOut(new PrintStream(printed, true));
            ObjectNode response = JSON.createObjectNode();
            try {
                respond(question, response);
            } catch (RuntimeException error) {
                response.removeAll();
                report(response, error);
            }
            System.setOut(out);
            if (question.get("do").asText().equals("run")) {
                response.put("printed", printed.toString());
            }
            out.println(JSON.writeValueAsString(response));
            out.flush();
        }
    }

    static void respond(JsonNode question, ObjectNode response) {
        if (question.get("do").asText().equals("metadata")) {
            response.put("text", Internals.metadata(question.get("time").asLong(), question.get("numbers")));
            return;
        }
        Properties config = config(question.path("config"));
        Plan plan = new Plan();
        Topology topology = plan.build(question.get("topology"), config);
        response.set("branches", JSON.valueToTree(plan.branches));
        if (question.get("do").asText().equals("describe")) {
            response.put("description", topology.describe().toString());
            return;
        }
        if (question.get("do").asText().equals("group")) {
            response.set("topology", Internals.groupTopology(topology, config));
            return;
        }
        TopologyTestDriver driver = new TopologyTestDriver(topology, config, Instant.EPOCH);
        try {
            pipe(driver, question.get("inputs"), response);
            response.set("produced", produced(driver));
            if (!response.has("error")) {
                response.set("stores", stores(driver, question.path("stores")));
            }
            response.set("seen", JSON.valueToTree(plan.seen));
        } finally {
            driver.close();
        }
    }

    static void report(ObjectNode response, Throwable error) {
        response.put("error", error.getClass().getSimpleName()).put("message", String.valueOf(error.getMessage()));
    }

    static Properties config(JsonNode given) {
        Properties config = new Properties();
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, "oracle");
        config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.STATE_DIR_CONFIG, stateDirectory);
        given.fields().forEachRemaining(entry -> config.put(entry.getKey(), entry.getValue().asText()));
        return config;
    }

    // Inputs and results.

    static void pipe(TopologyTestDriver driver, JsonNode inputs, ObjectNode response) {
        int index = 0;
        for (JsonNode input : inputs) {
            try {
                if (input.has("advance_ms")) {
                    driver.advanceWallClockTime(Duration.ofMillis(input.get("advance_ms").asLong()));
                } else {
                    TestInputTopic<byte[], byte[]> topic = driver.createInputTopic(
                        input.get("topic").asText(), new ByteArraySerializer(), new ByteArraySerializer());
                    topic.pipeInput(new TestRecord<>(bytes(input.path("key")), bytes(input.path("value")),
                        headers(input.path("headers")), input.get("timestamp").asLong()));
                }
            } catch (RuntimeException error) {
                report(response, error);
                response.put("failed_at", index);
                return;
            }
            index++;
        }
    }

    static ObjectNode produced(TopologyTestDriver driver) {
        ObjectNode result = JSON.createObjectNode();
        for (String name : new TreeSet<>(driver.producedTopicNames())) {
            ArrayNode records = result.putArray(name);
            driver.createOutputTopic(name, new ByteArrayDeserializer(), new ByteArrayDeserializer())
                .readRecordsToList().forEach(record -> {
                    ObjectNode fields = records.addObject().put("key", encoded(record.key()))
                        .put("value", encoded(record.value())).put("timestamp", record.timestamp());
                    ArrayNode headers = fields.putArray("headers");
                    for (Header header : record.headers()) {
                        headers.addArray().add(header.key()).add(encoded(header.value()));
                    }
                });
        }
        return result;
    }

    static ObjectNode stores(TopologyTestDriver driver, JsonNode names) {
        ObjectNode result = JSON.createObjectNode();
        for (JsonNode name : names) {
            ArrayNode lines = result.putArray(name.asText());
            StateStore store = driver.getAllStateStores().get(name.asText());
            if (store instanceof KeyValueStore) {
                ((KeyValueStore<Object, Object>) store).all().forEachRemaining(entry -> lines.add(line(entry)));
            } else if (store instanceof WindowStore) {
                ((WindowStore<Object, Object>) store).all().forEachRemaining(entry -> lines.add(line(entry)));
            } else if (store instanceof SessionStore) {
                ((SessionStore<Object, Object>) store).fetch(null, null)
                    .forEachRemaining(entry -> lines.add(line(entry)));
            } else if (store instanceof VersionedKeyValueStore) {
                for (String key : List.of("a", "b", "c", "d", "aa", "ab")) {
                    VersionedRecord<?> latest = ((VersionedKeyValueStore<Object, Object>) store).get(key);
                    lines.add(key + " = " + (latest == null ? "null" : latest.value() + " at " + latest.timestamp()));
                }
            }
        }
        return result;
    }

    static String line(KeyValue<?, Object> entry) {
        if (entry.value instanceof ValueAndTimestamp<?> stamped) {
            return entry.key + " = " + stamped.value() + " at " + stamped.timestamp();
        }
        return entry.key + " = " + entry.value;
    }

    static byte[] bytes(JsonNode text) {
        return text.isNull() || text.isMissingNode() ? null : Base64.getDecoder().decode(text.asText());
    }

    static String encoded(byte[] data) {
        return data == null ? null : Base64.getEncoder().encodeToString(data);
    }

    static RecordHeaders headers(JsonNode pairs) {
        RecordHeaders headers = new RecordHeaders();
        pairs.forEach(pair -> headers.add(pair.get(0).asText(), bytes(pair.get(1))));
        return headers;
    }
}
