// Kafka's own word on the settings of its clients, for tests to compare with: one JSON request a line in, one JSON answer a
// line out. Started from its source with Kafka's jars on the class path; `tests/support/java_oracle.py` speaks with it.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class ClientSettingsOracle {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream answers = System.out;
        System.setOut(System.err); // Whatever is logged is no answer.
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode asked = JSON.readTree(line);
            String kind = asked.get("kind").asText();
            JsonNode answer = switch (asked.get("do").asText()) {
                case "keys" -> keys(kind);
                case "read" -> read(kind, given(asked));
                default -> make(kind, given(asked));
            };
            answers.println(JSON.writeValueAsString(answer));
            answers.flush();
        }
    }

    // Every public key of a kind of client, with its default as text (null: none).
    static JsonNode keys(String kind) {
        ConfigDef all = switch (kind) {
            case "producer" -> ProducerConfig.configDef();
            case "consumer" -> ConsumerConfig.configDef();
            default -> AdminClientConfig.configDef();
        };
        ObjectNode answer = JSON.createObjectNode();
        for (ConfigDef.ConfigKey key : all.configKeys().values())
            if (!key.internalConfig)
                answer.put(key.name, key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null);
        return answer;
    }

    static Properties given(JsonNode asked) {
        Properties given = new Properties();
        given.put("bootstrap.servers", "localhost:9");
        asked.get("configs").fields().forEachRemaining(entry -> given.put(entry.getKey(), entry.getValue().asText()));
        return given;
    }

    // Read "configs" without making a client; the "fault" as in `make`.
    static JsonNode read(String kind, Properties given) {
        ObjectNode answer = JSON.createObjectNode();
        for (String key : new String[] {"key.serializer", "value.serializer"})
            given.put(key, ByteArraySerializer.class.getName());
        for (String key : new String[] {"key.deserializer", "value.deserializer"})
            given.put(key, ByteArrayDeserializer.class.getName());
        try {
            switch (kind) {
                case "producer" -> new ProducerConfig(given);
                case "consumer" -> new ConsumerConfig(given);
                default -> new AdminClientConfig(given);
            }
        } catch (RuntimeException refused) {
            answer.put("fault", String.valueOf(refused.getMessage()));
        }
        return answer;
    }

    // Make a client with "configs"; what it says when it refuses is the "fault", and without one it does not.
    static JsonNode make(String kind, Properties given) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            switch (kind) {
                case "producer" ->
                    new KafkaProducer<>(given, new ByteArraySerializer(), new ByteArraySerializer()).close(Duration.ZERO);
                case "consumer" ->
                    new KafkaConsumer<>(given, new ByteArrayDeserializer(), new ByteArrayDeserializer())
                        .close(CloseOptions.timeout(Duration.ZERO));
                default -> Admin.create(given).close(Duration.ZERO);
            }
        } catch (RuntimeException refused) {
            Throwable cause = refused.getCause() == null ? refused : refused.getCause();
            answer.put("fault", String.valueOf(cause.getMessage()));
        }
        return answer;
    }
}
