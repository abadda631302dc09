import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/**
 * Topologies of `StreamsOracle` as applications. A question is a line of JSON, and so is a response.
 *
 * {"do": "start", "topology": [step, ...], "config": {}} returns once the application is RUNNING or has failed, with
 * "state". {"do": "stop"} closes it and returns its last state.
 */
public class StreamsApplication {
    public static void main(String[] arguments) throws Exception {
        StreamsOracle.stateDirectory = arguments[0];
        PrintStream out = System.out;
        System.setOut(System.err);
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        KafkaStreams streams = null;
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            JsonNode question = StreamsOracle.JSON.readTree(line);
            if (question.get("do").asText().equals("start")) {
                streams = start(question);
            } else {
                streams.close(Duration.ofSeconds(60));
            }
            ObjectNode response = StreamsOracle.JSON.createObjectNode().put("state", streams.state().name());
            out.println(StreamsOracle.JSON.writeValueAsString(response));
            out.flush();
        }
    }

    static KafkaStreams start(JsonNode question) throws InterruptedException {
        Properties config = StreamsOracle.config(question.get("config"));
        KafkaStreams streams = new KafkaStreams(new Plan().build(question.get("topology"), config), config);
        LinkedBlockingQueue<KafkaStreams.State> states = new LinkedBlockingQueue<>();
        streams.setStateListener((now, before) -> states.add(now));
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        for (KafkaStreams.State state = states.take(); ; state = states.take()) {
            if (state == KafkaStreams.State.RUNNING || state == KafkaStreams.State.ERROR) {
                return streams;
            }
        }
    }
}
