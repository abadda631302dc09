import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * What Kafka's clients make of a transactional id, {"do": "init" or "fence", "servers": "host:port", "id": "t"}:
 * the class and words of the exception, "" for none. {"do": "records", "topic": "t"} beside them commits a, aborts b,
 * commits c, leaves one open, has a newer producer fence the first and commit d; what the fenced one's commit throws.
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
        try (KafkaProducer<byte[], byte[]> producer = producer(settings)) {
            producer.initTransactions();
            if (question.get("do").asText().equals("records")) {
                records(producer, settings, question.get("topic").asText());
            }
        }
    }

    private static KafkaProducer<byte[], byte[]> producer(Properties settings) {
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static void records(KafkaProducer<byte[], byte[]> producer, Properties settings, String topic)
            throws Exception {
        for (String value : List.of("a", "b", "c")) {
            producer.beginTransaction();
            send(producer, topic, value).get();
            if (value.equals("b")) {
                producer.abortTransaction();
            } else {
                producer.commitTransaction();
            }
        }
        producer.beginTransaction();
        send(producer, topic, "open").get();
        try (KafkaProducer<byte[], byte[]> newer = producer(settings)) {
            newer.initTransactions();
            newer.beginTransaction();
            send(newer, topic, "d").get();
            newer.commitTransaction();
        }
        producer.commitTransaction();
        throw new KafkaException("the fenced producer has committed");
    }

    private static Future<RecordMetadata> send(KafkaProducer<byte[], byte[]> producer, String topic, String value) {
        return producer.send(new ProducerRecord<>(topic, 0, null, value.getBytes()));
    }
}
