import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.ValueTransformerWithKey;
import org.apache.kafka.streams.kstream.ValueTransformerWithKeySupplier;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.*;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;

/** The processors that a step names. Their stores are key-value stores of strings. */
@SuppressWarnings({"unchecked", "rawtypes"})
final class Processors {
    private Processors() {
    }

    private static Set<StoreBuilder<?>> own(Options options) {
        Set<StoreBuilder<?>> builders = new HashSet<>();
        options.step.path("own_stores").forEach(store -> builders.add(Options.store(store)));
        return builders.isEmpty() ? null : builders;
    }

    private static String store(Options options) {
        return options.step.has("own_stores") ? options.step.get("own_stores").get(0).get("store").asText()
            : options.words("stores")[0];
    }

    /** Returns the new value of a key in a store of strings: the previous value and this one. */
    private static Object append(KeyValueStore store, Object key, Object value) {
        if (key == null) {
            return "no key";
        }
        Object appended = Functions.text(store.get(key)) + Functions.text(value);
        store.put(key, appended);
        return appended;
    }

    record Supplier(Options options) implements ProcessorSupplier {
        public Processor get() {
            return new Named(options);
        }

        public Set<StoreBuilder<?>> stores() {
            return own(options);
        }
    }

    record GlobalSupplier(Options options) implements ProcessorSupplier {
        public Processor get() {
            return new Processor() {
                private KeyValueStore store;

                public void init(ProcessorContext context) {
                    store = context.getStateStore(options.step.get("store").get("store").asText());
                }

                public void process(Record record) {
                    append(store, record.key(), record.value());
                }
            };
        }
    }

    record FixedSupplier(Options options) implements FixedKeyProcessorSupplier {
        public FixedKeyProcessor get() {
            return new NamedFixed(options);
        }

        public Set<StoreBuilder<?>> stores() {
            return own(options);
        }
    }

    record TransformerSupplier(Options options) implements ValueTransformerWithKeySupplier {
        public ValueTransformerWithKey get() {
            return new ValueTransformerWithKey() {
                public void init(org.apache.kafka.streams.processor.ProcessorContext context) {
                }

                public Object transform(Object key, Object value) {
                    return Functions.map(options.fn, key, value);
                }

                public void close() {
                }
            };
        }

        public Set<StoreBuilder<?>> stores() {
            return own(options);
        }
    }

    static final class Named implements Processor {
        private final Options options;
        private ProcessorContext context;

        Named(Options options) {
            this.options = options;
        }

        public void init(ProcessorContext context) {
            this.context = context;
            PunctuationType clock = switch (options.fn) {
                case "collect_by_stream_time" -> PunctuationType.STREAM_TIME;
                case "collect_by_wall_clock" -> PunctuationType.WALL_CLOCK_TIME;
                default -> null;
            };
            if (clock != null) {
                context.schedule(Duration.ofMillis(options.step.path("interval").asLong(100)), clock, this::punctuate);
            }
        }

        private KeyValueStore opened() {
            return context.getStateStore(store(options));
        }

        private void punctuate(long timestamp) {
            List<KeyValue> entries = new ArrayList<>();
            try (var all = opened().all()) {
                all.forEachRemaining(entry -> entries.add((KeyValue) entry));
            }
            for (KeyValue entry : entries) {
                context.forward(new Record(entry.key, entry.value, timestamp));
                opened().delete(entry.key);
            }
        }

        public void process(Record record) {
            Object value = record.value();
            switch (options.fn) {
                case "store_append": context.forward(record.withValue(append(opened(), record.key(), value))); break;
                case "collect_by_stream_time", "collect_by_wall_clock": append(opened(), record.key(), value); break;
                case "add_header":
                    context.forward(record.withHeaders(new RecordHeaders(record.headers()).add("added",
                        Functions.text(value).getBytes(StandardCharsets.UTF_8))).withTimestamp(record.timestamp() + 5));
                    break;
                case "forward_twice":
                    context.forward(record);
                    context.forward(record.withKey(Functions.first(value)).withValue(Functions.text(value) + "2"));
                    break;
                case "drop_odd":
                    if (Functions.text(value).length() % 2 == 0) {
                        context.forward(record);
                    }
                    break;
                case "position":
                    RecordMetadata at = (RecordMetadata) context.recordMetadata().get();
                    context.forward(record.withValue(at.topic() + "-" + at.partition() + "@" + at.offset() + "/"
                        + context.currentStreamTimeMs()));
                    break;
                case "to_child":
                    String child = options.words("children")[Functions.text(value).length() % 2];
                    context.forward(record, child);
                    break;
                default: throw new IllegalArgumentException(options.fn);
            }
        }
    }

    static final class NamedFixed implements FixedKeyProcessor {
        private final Options options;
        private FixedKeyProcessorContext context;

        NamedFixed(Options options) {
            this.options = options;
        }

        public void init(FixedKeyProcessorContext context) {
            this.context = context;
        }

        public void process(FixedKeyRecord record) {
            Object value = record.value();
            switch (options.fn) {
                case "store_append":
                    KeyValueStore opened = (KeyValueStore) context.getStateStore(store(options));
                    context.forward(record.withValue(append(opened, record.key(), value)));
                    break;
                case "add_header":
                    context.forward(record.withHeaders(new RecordHeaders(record.headers()).add("added",
                        Functions.text(value).getBytes(StandardCharsets.UTF_8))).withTimestamp(record.timestamp() + 5));
                    break;
                case "forward_twice":
                    context.forward(record);
                    context.forward(record.withValue(Functions.text(value) + "2"));
                    break;
                default: throw new IllegalArgumentException(options.fn);
            }
        }
    }
}
