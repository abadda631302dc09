import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Kafka's own clients, for tests of faults: {"do": "produce", "servers": "host:port", "topic": "t", "values": ["a"],
 * "settings": {}} and {"do": "consume", ..., "count": 1}. The answer has "values" (consumed) and "error": the error
 * code's name, "" for none.
 */
public class FaultOracle {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            JsonNode question = json.readTree(line);
            List<String> values = new ArrayList<>();
            String error = "";
            try {
                if (question.get("do").asText().equals("produce")) {
                    produce(question);
                } else {
                    consume(question, values);
                }
            } catch (ExecutionException exception) {
                error = Errors.forException(exception.getCause()).name();
            } catch (RuntimeException exception) {
                error = Errors.forException(exception).name();
            }
            System.out.println(json.writeValueAsString(Map.of("values", values, "error", error)));
        }
    }

    private static Properties settings(JsonNode question) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", question.get("servers").asText());
        question.get("settings").fields().forEachRemaining(it -> settings.put(it.getKey(), it.getValue().asText()));
        return settings;
    }

    private static void produce(JsonNode question) throws Exception {
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings(question), new StringSerializer(), new StringSerializer())) {
            for (JsonNode value : question.get("values")) {
                producer.send(new ProducerRecord<>(question.get("topic").asText(), value.asText())).get();
            }
        }
    }

    private static void consume(JsonNode question, List<String> values) {
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings(question), new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(question.get("topic").asText()));
            while (values.size() < question.get("count").asInt()) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
                    values.add(record.value());
                }
            }
            consumer.commitSync();
        }
    }
}
