import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.apache.kafka.streams.KeyValue;

/**
 * The functions that a step of a topology names. Each exists in Python too, in `tests/support/streams_functions.py`. A
 * null is "" to most of them, and "*" to joiners.
 */
@SuppressWarnings({"unchecked", "rawtypes"})
final class Functions {
    static String text(Object value) {
        return value == null ? "" : value.toString();
    }

    static String first(Object value) {
        return text(value).isEmpty() ? "" : text(value).substring(0, 1);
    }

    static boolean test(String name, Object key, Object value) {
        return switch (name) {
            case "value_longer_than_3" -> text(value).length() > 3;
            case "value_length_is_even" -> text(value).length() % 2 == 0;
            case "value_is_not_null" -> value != null;
            case "key_is_not_null" -> key != null;
            case "key_is_not_a" -> !text(key).equals("a");
            case "key_comes_after_value" -> text(key).compareTo(text(value)) > 0;
            case "always" -> true;
            case "never" -> false;
            default -> throw new IllegalArgumentException(name);
        };
    }

    /** Maps a key and a value to a value or a key. */
    static Object map(String name, Object key, Object value) {
        return switch (name) {
            case "upper" -> value == null ? null : text(value).toUpperCase();
            case "append_x" -> text(value) + "x";
            case "null_if_b" -> text(value).startsWith("b") ? null : value;
            case "length" -> String.valueOf(text(value).length());
            case "count_as_text" -> value == null ? null : value.toString();
            case "key_and_value" -> text(key) + ":" + text(value);
            case "value" -> value;
            case "same_key", "same" -> key;
            case "windowed_key_as_text" -> String.valueOf(key);
            case "first_char_of_value" -> first(value);
            case "null_key_if_empty" -> text(value).isEmpty() ? null : first(value);
            case "null_if_c" -> text(value).startsWith("c") ? null : first(value);
            case "last_char_of_value" -> text(value).isEmpty() ? "" : text(value).substring(text(value).length() - 1);
            default -> throw new IllegalArgumentException(name);
        };
    }

    static KeyValue pair(String name, Object key, Object value) {
        return switch (name) {
            case "swap" -> KeyValue.pair(value, key);
            case "key_by_first_char" -> KeyValue.pair(first(value), value);
            case "same_pair" -> KeyValue.pair(key, value);
            case "null_key_if_b" -> KeyValue.pair(text(value).startsWith("b") ? null : first(value), value);
            case "null_value_if_b" -> KeyValue.pair(first(value), text(value).startsWith("b") ? null : value);
            default -> throw new IllegalArgumentException(name);
        };
    }

    static List<Object> list(String name, Object key, Object value) {
        return switch (name) {
            case "twice" -> List.of(text(value), text(value) + "2");
            case "letters" -> new ArrayList<>(List.of(text(value).split("(?!^)")));
            case "none" -> List.of();
            default -> throw new IllegalArgumentException(name);
        };
    }

    static List<KeyValue> pairs(String name, Object key, Object value) {
        List<KeyValue> result = new ArrayList<>();
        list(name, key, value).forEach(one -> result.add(KeyValue.pair(name.equals("letters") ? one : key, one)));
        return result;
    }

    /** Combines two values of a key: joiner (left, right), aggregator and reducer (aggregate, value), and merger. */
    static Object combine(String name, Object key, Object one, Object other) {
        return switch (name) {
            case "concat_null_as_star" -> (one == null ? "*" : one) + "+" + (other == null ? "*" : other);
            case "key_and_both" -> text(key) + ":" + (one == null ? "*" : one) + "+" + (other == null ? "*" : other);
            case "null_if_same_start" -> first(one).equals(first(other)) ? null : text(one) + "-" + text(other);
            case "append", "concat" -> text(one) + text(other);
            case "append_key" -> text(one) + text(key);
            case "append_or_null" -> text(other).startsWith("c") ? null : text(one) + text(other);
            case "remove_first" -> text(one).replaceFirst(Pattern.quote(text(other)), "");
            case "max_string" -> text(one).compareTo(text(other)) >= 0 ? one : other;
            case "second" -> other;
            case "first" -> one;
            default -> throw new IllegalArgumentException(name);
        };
    }

    static String topic(String name, Object key, Object value) {
        return switch (name) {
            case "by_length" -> "out-" + text(value).length() % 2;
            default -> throw new IllegalArgumentException(name);
        };
    }
}
