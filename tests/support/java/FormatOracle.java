// Kafka's storage tool, for tests to compare with: the arguments of one run as JSON a line in; its status, what it printed
// and why it failed as JSON a line out. Started from its source with Kafka's jars on the class path;
// `tests/support/java_oracle.py` speaks with it.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import kafka.tools.StorageTool;

public class FormatOracle {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream answers = System.out;
        System.setOut(System.err); // Whatever is logged is no answer.
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(JSON.writeValueAsString(run(JSON.readTree(line))));
            answers.flush();
        }
    }

    static JsonNode run(JsonNode asked) {
        List<String> words = new ArrayList<>();
        asked.get("words").forEach(word -> words.add(word.asText()));
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        ObjectNode answer = JSON.createObjectNode();
        int status = 1;
        String fault = "";
        try {
            status = StorageTool.execute(words.toArray(String[]::new), new PrintStream(printed, true));
        } catch (Throwable failed) { // The tool's own failures are checked, though Scala declares none.
            fault = String.valueOf(failed.getMessage());
        }
        answer.put("status", status);
        answer.put("printed", printed.toString());
        answer.put("fault", fault);
        return answer;
    }
}
