import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.TopicNameExtractor;
import org.apache.kafka.streams.processor.api.*;

/** One step of a topology: calls the operation of Kafka that the step names. */
@SuppressWarnings({"unchecked", "rawtypes", "deprecation"})
final class Step extends Options {
    Step(Plan plan, JsonNode step) {
        super(plan, step);
    }

    Object apply() {
        String op = word("op");
        Object on = on();
        if (List.of("join", "left_join", "outer_join", "join_on", "left_join_on").contains(op)) {
            return on instanceof KStream stream ? new Joins(this).ofStream(stream)
                : new Joins(this).ofTable((KTable) on);
        }
        if (on instanceof KStream stream) {
            return ofStream(op, stream);
        }
        if (on instanceof KTable table) {
            return ofTable(op, table);
        }
        return on == null ? source(op) : new Aggregations(this).apply(op, on);
    }

    Object source(String op) {
        switch (op) {
            case "stream":
                return word("pattern") != null ? plan.builder.stream(Pattern.compile(word("pattern")), consumed())
                    : plan.builder.stream(List.of(words("topics")), consumed());
            case "table":
                return stored() == null ? plan.builder.table(word("topic"), consumed())
                    : plan.builder.table(word("topic"), consumed(), stored());
            case "global_table":
                return stored() == null ? plan.builder.globalTable(word("topic"), consumed())
                    : plan.builder.globalTable(word("topic"), consumed(), stored());
            case "state_store":
                return plan.builder.addStateStore(store(step));
            case "global_store":
                return plan.builder.addGlobalStore(store(step.get("store")), word("topic"), consumed(),
                    new Processors.GlobalSupplier(this));
            default:
                throw new IllegalArgumentException(op);
        }
    }

    Object ofStream(String op, KStream stream) {
        boolean withKey = step.path("with_key").asBoolean();
        ValueMapper value = v -> Functions.map(fn, null, v);
        ValueMapperWithKey valueWithKey = (k, v) -> Functions.map(fn, k, v);
        KeyValueMapper key = (k, v) -> Functions.map(fn, k, v);
        ForeachAction action = (k, v) -> plan.seen.add(word("id") + " " + k + "=" + v);
        ValueMapper values = v -> Functions.list(fn, null, v);
        ValueMapperWithKey valuesWithKey = (k, v) -> Functions.list(fn, k, v);
        switch (op) {
            case "filter": return stream.filter((k, v) -> Functions.test(fn, k, v), named());
            case "filter_not": return stream.filterNot((k, v) -> Functions.test(fn, k, v), named());
            case "select_key": return stream.selectKey(key, named());
            case "map": return stream.map((k, v) -> Functions.pair(fn, k, v), named());
            case "map_values":
                return withKey ? stream.mapValues(valueWithKey, named()) : stream.mapValues(value, named());
            case "flat_map": return stream.flatMap((k, v) -> Functions.pairs(fn, k, v), named());
            case "flat_map_values":
                return withKey ? stream.flatMapValues(valuesWithKey, named())
                    : stream.flatMapValues(values, named());
            case "peek": return stream.peek(action, named());
            case "foreach": stream.foreach(action, named()); return null;
            case "print": stream.print(printed()); return null;
            case "merge": return stream.merge((KStream) with(), named());
            case "repartition": return stream.repartition(repartitioned());
            case "to": to(stream); return null;
            case "to_table":
                return stored() == null ? stream.toTable(named()) : stream.toTable(named(), stored());
            case "group_by": return stream.groupBy(key, grouped());
            case "group_by_key": return stream.groupByKey(grouped());
            case "split": return split(stream.split(named()));
            case "process":
                ProcessorSupplier supplier = new Processors.Supplier(this);
                return word("name") == null ? stream.process(supplier, words("stores"))
                    : stream.process(supplier, named(), words("stores"));
            case "process_values":
                Processors.FixedSupplier fixed = new Processors.FixedSupplier(this);
                return word("name") == null ? stream.processValues(fixed, words("stores"))
                    : stream.processValues(fixed, named(), words("stores"));
            default: throw new IllegalArgumentException(op);
        }
    }

    Object ofTable(String op, KTable table) {
        boolean withKey = step.path("with_key").asBoolean();
        Materialized stored = stored();
        Predicate predicate = (k, v) -> Functions.test(fn, k, v);
        KeyValueMapper key = (k, v) -> Functions.map(fn, k, v);
        ValueMapper value = v -> Functions.map(fn, null, v);
        ValueMapperWithKey valueWithKey = (k, v) -> Functions.map(fn, k, v);
        switch (op) {
            case "filter":
                return stored == null ? table.filter(predicate, named()) : table.filter(predicate, named(), stored);
            case "filter_not":
                return stored == null ? table.filterNot(predicate, named())
                    : table.filterNot(predicate, named(), stored);
            case "map_values":
                if (withKey) {
                    return stored == null ? table.mapValues(valueWithKey, named())
                        : table.mapValues(valueWithKey, named(), stored);
                }
                return stored == null ? table.mapValues(value, named()) : table.mapValues(value, named(), stored);
            case "transform_values":
                ValueTransformerWithKeySupplier supplier = new Processors.TransformerSupplier(this);
                return stored == null ? table.transformValues(supplier, named(), words("stores"))
                    : table.transformValues(supplier, stored, named(), words("stores"));
            case "to_stream": return fn.isEmpty() ? table.toStream(named()) : table.toStream(key, named());
            case "group_by": return table.groupBy((k, v) -> Functions.pair(fn, k, v), grouped());
            case "suppress": return table.suppress(suppressed());
            default: throw new IllegalArgumentException(op);
        }
    }

    private void to(KStream stream) {
        if (word("topic") != null) {
            stream.to(word("topic"), produced());
        } else {
            TopicNameExtractor extractor = (k, v, context) -> Functions.topic(word("extractor"), k, v);
            stream.to(extractor, produced());
        }
    }

    /** Puts each branch into the nodes by the id of the branch, and the names of all branches into the plan. */
    private Object split(BranchedKStream split) {
        for (JsonNode branch : step.get("branches")) {
            split = split.branch((k, v) -> Functions.test(branch.get("fn").asText(), k, v), branched(branch));
        }
        Map<String, KStream> all = step.has("default") ? split.defaultBranch(branched(step.get("default")))
            : split.noDefaultBranch();
        plan.branches.put(word("id"), new TreeSet<>(all.keySet()));
        return null;
    }

    private Branched branched(JsonNode branch) {
        String name = branch.has("name") ? branch.get("name").asText() : null;
        if (branch.has("to")) {
            Consumer<KStream> consumer = stream -> stream.to(branch.get("to").asText());
            return Branched.withConsumer((Consumer) consumer, name);
        }
        Function<KStream, KStream> function = stream -> {
            KStream result = branch.has("through")
                ? stream.mapValues(v -> Functions.map(branch.get("through").asText(), null, v)) : stream;
            plan.nodes.put(branch.get("id").asText(), result);
            return result;
        };
        return Branched.withFunction((Function) function, name);
    }

    /** Extends a built topology by a step of the Processor API. */
    void extend(Topology topology) {
        switch (word("op")) {
            case "api_source": topology.addSource(word("name"), words("topics")); break;
            case "api_processor":
                topology.addProcessor(word("name"), new Processors.Supplier(this), words("parents"));
                break;
            case "api_sink": topology.addSink(word("name"), word("topic"), words("parents")); break;
            case "api_store": topology.addStateStore(store(step), words("processors")); break;
            case "api_connect": topology.connectProcessorAndStateStores(word("name"), words("stores")); break;
            default: throw new IllegalArgumentException(word("op"));
        }
    }
}
