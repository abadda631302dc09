import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.AutoOffsetReset;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.kstream.internals.NamedInternal;
import org.apache.kafka.streams.processor.TimestampExtractor;
import org.apache.kafka.streams.state.*;

/** The options of one step of a topology, as the option classes of Kafka. */
@SuppressWarnings({"unchecked", "rawtypes"})
class Options {
    final Plan plan;
    final JsonNode step;
    final String fn;

    Options(Plan plan, JsonNode step) {
        this.plan = plan;
        this.step = step;
        this.fn = step.path("fn").asText("");
    }

    String word(String field) {
        return step.has(field) && !step.get(field).isNull() ? step.get(field).asText() : null;
    }

    String[] words(String field) {
        List<String> words = new ArrayList<>();
        step.path(field).forEach(word -> words.add(word.asText()));
        return words.toArray(new String[0]);
    }

    Object on() {
        return plan.nodes.get(word("on"));
    }

    Object with() {
        return plan.nodes.get(word("with"));
    }

    Named named() {
        return word("name") == null ? NamedInternal.empty() : Named.as(word("name"));
    }

    static Serde serde(JsonNode name) {
        if (name.isMissingNode() || name.isNull()) {
            return null;
        }
        return switch (name.asText()) {
            case "string" -> Serdes.String();
            case "int64" -> Serdes.Long();
            case "bytes" -> Serdes.ByteArray();
            case "session_string" -> WindowedSerdes.sessionWindowedSerdeFrom(String.class);
            case "windowed_string" -> WindowedSerdes.timeWindowedSerdeFrom(String.class, Long.MAX_VALUE);
            default -> throw new IllegalArgumentException(name.asText());
        };
    }

    Serde keySerde() {
        return serde(step.path("key_serde"));
    }

    Serde valueSerde() {
        return serde(step.path("value_serde"));
    }

    Serde otherSerde() {
        return serde(step.path("other_value_serde"));
    }

    Consumed consumed() {
        Consumed consumed = Consumed.with(keySerde(), valueSerde());
        if (word("timestamp_extractor") != null) {
            consumed = consumed.withTimestampExtractor(extractor(word("timestamp_extractor")));
        }
        if (word("offset_reset") != null) {
            consumed = consumed.withOffsetResetPolicy(word("offset_reset").equals("earliest")
                ? AutoOffsetReset.earliest() : AutoOffsetReset.latest());
        }
        return word("name") == null ? consumed : consumed.withName(word("name"));
    }

    static TimestampExtractor extractor(String name) {
        return (record, partitionTime) -> switch (name) {
            case "plus_100" -> record.timestamp() + 100;
            case "negative_if_b" -> Functions.text(record.value()).startsWith("b") ? -1 : record.timestamp();
            case "partition_time_if_b" -> Functions.text(record.value()).startsWith("b") ? partitionTime : record.timestamp();
            default -> throw new IllegalArgumentException(name);
        };
    }

    /** Returns null if the step has no option of a store. */
    Materialized stored() {
        for (String option : List.of("store", "key_serde", "value_serde", "caching", "logging", "retention")) {
            if (step.has(option)) {
                return materialized();
            }
        }
        return null;
    }

    Materialized materialized() {
        Materialized result = word("store") == null ? Materialized.with(null, null)
            : step.has("versioned") ? Materialized.as(Stores.persistentVersionedKeyValueStore(
                word("store"), Duration.ofMillis(step.get("versioned").asLong())))
            : Materialized.as(word("store"));
        result = result.withKeySerde(keySerde()).withValueSerde(valueSerde());
        if (step.has("caching")) {
            result = step.get("caching").asBoolean() ? result.withCachingEnabled() : result.withCachingDisabled();
        }
        if (step.has("logging")) {
            result = step.get("logging").asBoolean() ? result.withLoggingEnabled(Map.of())
                : result.withLoggingDisabled();
        }
        return step.has("retention") ? result.withRetention(Duration.ofMillis(step.get("retention").asLong()))
            : result;
    }

    Grouped grouped() {
        return Grouped.with(word("name"), keySerde(), valueSerde());
    }

    Produced produced() {
        Produced produced = Produced.with(keySerde(), valueSerde());
        return word("name") == null ? produced : produced.withName(word("name"));
    }

    Duration duration(JsonNode options, String field) {
        return Duration.ofMillis(options.path(field).asLong(0));
    }

    JoinWindows joinWindows() {
        JsonNode windows = step.get("windows");
        JoinWindows result = JoinWindows.ofTimeDifferenceAndGrace(Duration.ZERO, duration(windows, "grace"));
        if (windows.path("after").asLong() < 0) {
            return result.before(duration(windows, "before")).after(duration(windows, "after"));
        }
        return result.after(duration(windows, "after")).before(duration(windows, "before"));
    }

    Printed printed() {
        Printed printed = Printed.toSysOut();
        if (word("label") != null) {
            printed = printed.withLabel(word("label"));
        }
        return word("name") == null ? printed : printed.withName(word("name"));
    }

    Repartitioned repartitioned() {
        Repartitioned result = Repartitioned.with(keySerde(), valueSerde());
        if (step.has("partitions")) {
            result = result.withNumberOfPartitions(step.get("partitions").asInt());
        }
        return word("name") == null ? result : result.withName(word("name"));
    }

    Suppressed suppressed() {
        Suppressed result;
        if (word("until").equals("window_closes")) {
            result = Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded());
        } else {
            Suppressed.BufferConfig buffer = Suppressed.BufferConfig.unbounded();
            if (step.has("max_records") || step.has("max_bytes")) {
                long bytes = step.path("max_bytes").asLong(Long.MAX_VALUE);
                long records = step.path("max_records").asLong(Long.MAX_VALUE);
                buffer = Suppressed.BufferConfig.maxRecords(records).withMaxBytes(bytes);
                buffer = "shutdown".equals(word("full")) ? buffer.shutDownWhenFull() : buffer.emitEarlyWhenFull();
            }
            if (step.has("logging") && !step.get("logging").asBoolean()) {
                buffer = buffer.withLoggingDisabled();
            }
            result = Suppressed.untilTimeLimit(duration(step, "wait"), buffer);
        }
        return word("name") == null ? result : result.withName(word("name"));
    }

    /** Returns the builder of a store that the program adds itself. */
    static StoreBuilder store(JsonNode given) {
        String name = given.get("store").asText();
        Duration retention = Duration.ofMillis(given.path("retention").asLong(1000));
        Duration size = Duration.ofMillis(given.path("size").asLong(100));
        Serde key = Serdes.String();
        Serde value = Serdes.String();
        StoreBuilder result = switch (given.get("kind").asText()) {
            case "key_value" -> Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore(name), key, value);
            case "timestamped_key_value" ->
                Stores.timestampedKeyValueStoreBuilder(Stores.inMemoryKeyValueStore(name), key, value);
            case "versioned" -> Stores.versionedKeyValueStoreBuilder(
                Stores.persistentVersionedKeyValueStore(name, retention), key, value);
            case "window" -> Stores.windowStoreBuilder(
                Stores.inMemoryWindowStore(name, retention, size, given.path("duplicates").asBoolean()), key, value);
            case "timestamped_window" -> Stores.timestampedWindowStoreBuilder(
                Stores.inMemoryWindowStore(name, retention, size, false), key, value);
            case "session" -> Stores.sessionStoreBuilder(Stores.inMemorySessionStore(name, retention), key, value);
            default -> throw new IllegalArgumentException(given.get("kind").asText());
        };
        if (given.path("caching").asBoolean()) {
            result = result.withCachingEnabled();
        }
        return given.path("logging").asBoolean(true) ? result : result.withLoggingDisabled();
    }
}
