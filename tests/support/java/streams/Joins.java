import java.util.function.BiFunction;
import org.apache.kafka.streams.kstream.*;

/** Joins: the step's node is the left side and the node of `with` the right side. */
@SuppressWarnings({"unchecked", "rawtypes"})
final class Joins {
    private final Options options;
    private final String op;
    private final ValueJoiner joiner;
    private final ValueJoinerWithKey joinerWithKey;
    private final boolean withKey;

    Joins(Options options) {
        this.options = options;
        this.op = options.word("op");
        this.joiner = (left, right) -> Functions.combine(options.fn, null, left, right);
        this.joinerWithKey = (key, left, right) -> Functions.combine(options.fn, key, left, right);
        this.withKey = options.step.path("with_key").asBoolean();
    }

    KStream ofStream(KStream stream) {
        if (options.with() instanceof KStream other) {
            return streams(stream, other);
        }
        return options.with() instanceof KTable table ? withTable(stream, table)
            : withGlobalTable(stream, (GlobalKTable) options.with());
    }

    private KStream streams(KStream stream, KStream other) {
        JoinWindows windows = options.joinWindows();
        StreamJoined joined = StreamJoined.with(options.keySerde(), options.valueSerde(), options.otherSerde());
        if (options.word("name") != null) {
            joined = joined.withName(options.word("name"));
        }
        if (options.word("store") != null) {
            joined = joined.withStoreName(options.word("store"));
        }
        if (options.step.has("logging") && !options.step.get("logging").asBoolean()) {
            joined = joined.withLoggingDisabled();
        }
        switch (op) {
            case "join":
                return withKey ? stream.join(other, joinerWithKey, windows, joined)
                    : stream.join(other, joiner, windows, joined);
            case "left_join":
                return withKey ? stream.leftJoin(other, joinerWithKey, windows, joined)
                    : stream.leftJoin(other, joiner, windows, joined);
            default:
                return withKey ? stream.outerJoin(other, joinerWithKey, windows, joined)
                    : stream.outerJoin(other, joiner, windows, joined);
        }
    }

    private KStream withTable(KStream stream, KTable table) {
        Joined joined = Joined.with(options.keySerde(), options.valueSerde(), options.otherSerde());
        if (options.word("name") != null) {
            joined = joined.withName(options.word("name"));
        }
        if (options.step.has("grace")) {
            joined = joined.withGracePeriod(options.duration(options.step, "grace"));
        }
        if (op.equals("join")) {
            return withKey ? stream.join(table, joinerWithKey, joined) : stream.join(table, joiner, joined);
        }
        return withKey ? stream.leftJoin(table, joinerWithKey, joined) : stream.leftJoin(table, joiner, joined);
    }

    private KStream withGlobalTable(KStream stream, GlobalKTable table) {
        KeyValueMapper selector = (k, v) -> Functions.map(options.word("selector"), k, v);
        Named named = options.named();
        if (op.equals("join")) {
            return withKey ? stream.join(table, selector, joinerWithKey, named)
                : stream.join(table, selector, joiner, named);
        }
        return withKey ? stream.leftJoin(table, selector, joinerWithKey, named)
            : stream.leftJoin(table, selector, joiner, named);
    }

    KTable ofTable(KTable table) {
        KTable other = (KTable) options.with();
        Materialized stored = options.stored();
        Named named = options.named();
        switch (op) {
            case "join":
                return stored == null ? table.join(other, joiner, named) : table.join(other, joiner, named, stored);
            case "left_join":
                return stored == null ? table.leftJoin(other, joiner, named)
                    : table.leftJoin(other, joiner, named, stored);
            case "outer_join":
                return stored == null ? table.outerJoin(other, joiner, named)
                    : table.outerJoin(other, joiner, named, stored);
            default:
                return byForeignKey(table, other);
        }
    }

    private KTable byForeignKey(KTable table, KTable other) {
        BiFunction extractor = (k, v) -> Functions.map(options.word("extractor"), k, v);
        TableJoined joined = TableJoined.with(null, null);
        if (options.word("name") != null) {
            joined = joined.withName(options.word("name"));
        }
        Materialized stored = options.stored();
        if (op.equals("join_on")) {
            return stored == null ? table.join(other, extractor, joiner, joined)
                : table.join(other, extractor, joiner, joined, stored);
        }
        return stored == null ? table.leftJoin(other, extractor, joiner, joined)
            : table.leftJoin(other, extractor, joiner, joined, stored);
    }
}
