import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * What Kafka's clients make of a transactional id, {"do": "init" or "fence", "servers": "host:port", "id": "t"}:
 * the class and words of the exception, "" for none.
 */
public class TransactionOracle {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            JsonNode question = json.readTree(line);
            Throwable thrown = null;
            try {
                tried(question);
            } catch (ExecutionException exception) {
                thrown = exception.getCause();
            } catch (RuntimeException exception) {
                thrown = exception;
            }
            System.out.println(json.writeValueAsString(Map.of(
                "class", thrown == null ? "" : thrown.getClass().getSimpleName(),
                "message", thrown == null ? "" : String.valueOf(thrown.getMessage()))));
        }
    }

    private static void tried(JsonNode question) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", question.get("servers").asText());
        String id = question.get("id").asText();
        if (question.get("do").asText().equals("fence")) {
            try (Admin admin = Admin.create(settings)) {
                admin.fenceProducers(List.of(id)).all().get();
            }
            return;
        }
        settings.put("transactional.id", id);
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
        }
    }
}
