import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import org.apache.kafka.common.protocol.Errors;

/** The exception and the words that Kafka's clients have for an error code: {"do": "name", "code": 3}. */
public class ErrorOracle {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            Errors error = Errors.forCode((short) json.readTree(line).get("code").asInt());
            System.out.println(json.writeValueAsString(Map.of(
                "name", error.name(),
                "class", error.exception() == null ? "" : error.exception().getClass().getName(),
                "message", error.message())));
        }
    }
}
