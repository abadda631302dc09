import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.time.Instant;
import org.apache.kafka.streams.kstream.*;

/** Operations of grouped streams and tables, windowed or not. */
@SuppressWarnings({"unchecked", "rawtypes"})
final class Aggregations {
    private final Options options;
    private final Named named;
    private final Materialized stored;
    private final Materialized materialized;
    private final Initializer initializer;
    private final Aggregator aggregator;
    private final Aggregator subtractor;
    private final Reducer reducer;
    private final Reducer reduceSubtractor;
    private final Merger merger;

    Aggregations(Options options) {
        this.options = options;
        this.named = options.named();
        this.stored = options.stored();
        this.materialized = options.materialized();
        String fn = options.fn;
        String minus = options.word("subtractor");
        String start = options.word("initializer");
        this.initializer = () -> "null".equals(start) ? null : start == null ? "" : start;
        this.aggregator = (key, value, aggregate) -> Functions.combine(fn, key, aggregate, value);
        this.subtractor = (key, value, aggregate) -> Functions.combine(minus, key, aggregate, value);
        this.reducer = (aggregate, value) -> Functions.combine(fn, null, aggregate, value);
        this.reduceSubtractor = (aggregate, value) -> Functions.combine(minus, null, aggregate, value);
        this.merger = (key, one, other) -> Functions.combine(options.word("merger"), key, one, other);
    }

    Object apply(String op, Object on) {
        switch (op) {
            case "windowed_by": return windowed(on);
            case "cogroup":
                return on instanceof CogroupedKStream group
                    ? group.cogroup((KGroupedStream) options.with(), aggregator)
                    : ((KGroupedStream) on).cogroup(aggregator);
            case "count": return count(on);
            case "reduce": return reduce(on);
            case "aggregate": return aggregate(on);
            default: throw new IllegalArgumentException(op);
        }
    }

    private Object windowed(Object on) {
        JsonNode windows = options.step.get("windows");
        Duration size = options.duration(windows, "size");
        Duration grace = options.duration(windows, "grace");
        switch (windows.get("kind").asText()) {
            case "sliding":
                SlidingWindows sliding = SlidingWindows.ofTimeDifferenceAndGrace(size, grace);
                return on instanceof KGroupedStream group ? emit(group.windowedBy(sliding))
                    : ((CogroupedKStream) on).windowedBy(sliding);
            case "session":
                SessionWindows sessions = SessionWindows.ofInactivityGapAndGrace(size, grace);
                return on instanceof KGroupedStream group ? emit(group.windowedBy(sessions))
                    : ((CogroupedKStream) on).windowedBy(sessions);
            case "unlimited":
                return fixed(on, UnlimitedWindows.of().startOn(Instant.ofEpochMilli(windows.path("start").asLong(0))));
            default:
                TimeWindows tumbling = TimeWindows.ofSizeAndGrace(size, grace);
                return fixed(on, windows.has("advance") ? tumbling.advanceBy(options.duration(windows, "advance"))
                    : tumbling);
        }
    }

    private Object fixed(Object on, Windows windows) {
        return on instanceof KGroupedStream group ? emit(group.windowedBy(windows))
            : ((CogroupedKStream) on).windowedBy(windows);
    }

    private Object emit(Object windowed) {
        if (options.word("emit") == null) {
            return windowed;
        }
        EmitStrategy strategy = options.word("emit").equals("close") ? EmitStrategy.onWindowClose()
            : EmitStrategy.onWindowUpdate();
        return windowed instanceof SessionWindowedKStream sessions ? sessions.emitStrategy(strategy)
            : ((TimeWindowedKStream) windowed).emitStrategy(strategy);
    }

    // Kafka numbers nodes differently if the call has a Materialized, so that a step without one calls without one.

    private KTable count(Object on) {
        if (on instanceof KGroupedStream group) {
            return stored == null ? group.count(named) : group.count(named, stored);
        }
        if (on instanceof KGroupedTable group) {
            return stored == null ? group.count(named) : group.count(named, stored);
        }
        if (on instanceof TimeWindowedKStream windowed) {
            return stored == null ? windowed.count(named) : windowed.count(named, stored);
        }
        SessionWindowedKStream sessions = (SessionWindowedKStream) on;
        return stored == null ? sessions.count(named) : sessions.count(named, stored);
    }

    private KTable reduce(Object on) {
        boolean isNamed = options.word("name") != null;
        if (on instanceof KGroupedStream group) {
            return stored == null && !isNamed ? group.reduce(reducer) : group.reduce(reducer, named, materialized);
        }
        if (on instanceof KGroupedTable group) {
            return stored == null && !isNamed ? group.reduce(reducer, reduceSubtractor)
                : group.reduce(reducer, reduceSubtractor, named, materialized);
        }
        if (on instanceof TimeWindowedKStream windowed) {
            return stored == null ? windowed.reduce(reducer, named) : windowed.reduce(reducer, named, stored);
        }
        SessionWindowedKStream sessions = (SessionWindowedKStream) on;
        return stored == null ? sessions.reduce(reducer, named) : sessions.reduce(reducer, named, stored);
    }

    private KTable aggregate(Object on) {
        if (on instanceof KGroupedStream group) {
            return stored == null && options.word("name") == null ? group.aggregate(initializer, aggregator)
                : group.aggregate(initializer, aggregator, named, materialized);
        }
        if (on instanceof KGroupedTable group) {
            return stored == null ? group.aggregate(initializer, aggregator, subtractor, named)
                : group.aggregate(initializer, aggregator, subtractor, named, stored);
        }
        if (on instanceof TimeWindowedKStream windowed) {
            return stored == null ? windowed.aggregate(initializer, aggregator, named)
                : windowed.aggregate(initializer, aggregator, named, stored);
        }
        if (on instanceof SessionWindowedKStream windowed) {
            return stored == null ? windowed.aggregate(initializer, aggregator, merger, named)
                : windowed.aggregate(initializer, aggregator, merger, named, stored);
        }
        return cogrouped(on);
    }

    private KTable cogrouped(Object on) {
        if (on instanceof CogroupedKStream group) {
            return stored == null ? group.aggregate(initializer, named) : group.aggregate(initializer, named, stored);
        }
        if (on instanceof TimeWindowedCogroupedKStream windowed) {
            return stored == null ? windowed.aggregate(initializer, named)
                : windowed.aggregate(initializer, named, stored);
        }
        SessionWindowedCogroupedKStream sessions = (SessionWindowedCogroupedKStream) on;
        return stored == null ? sessions.aggregate(initializer, merger, named)
            : sessions.aggregate(initializer, merger, named, stored);
    }
}
