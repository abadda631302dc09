// Kafka's own tools, one run after the other in one virtual machine: the class and the arguments of a run as JSON a line in;
// its status and what it printed as JSON a line out. Started from its source with Kafka's jars on the class path;
// `tests/support/java_oracle.py` speaks with it.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

public class ToolOracle {
    static final ObjectMapper JSON = new ObjectMapper();

    /** What a tool's exit becomes. Some tools catch it and go on to say so: what they print from then on is dropped. */
    static final class Exited extends Error {
        final int status;
        final String printed = ToolOracle.printed.toString();
        final String failures = ToolOracle.failures.toString();

        Exited(int status) {
            super(null, null, false, false);
            this.status = status;
        }
    }

    static ByteArrayOutputStream printed = new ByteArrayOutputStream();
    static ByteArrayOutputStream failures = new ByteArrayOutputStream();
    /** The first exit of the run; null before it. */
    static Exited exited;

    public static void main(String[] arguments) throws Exception {
        Exit.Procedure exit = (status, message) -> {
            if (exited == null) {
                exited = new Exited(status);
            }
            throw exited;
        };
        Exit.setExitProcedure(exit);
        Exit.setHaltProcedure(exit);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream answers = System.out;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(JSON.writeValueAsString(run(JSON.readTree(line))));
            answers.flush();
        }
    }

    static JsonNode run(JsonNode asked) throws Exception {
        List<String> words = new ArrayList<>();
        asked.get("words").forEach(word -> words.add(word.asText()));
        PrintStream out = System.out;
        PrintStream err = System.err;
        printed = new ByteArrayOutputStream();
        failures = new ByteArrayOutputStream();
        exited = null;
        System.setOut(new PrintStream(printed, true));
        System.setErr(new PrintStream(failures, true));
        try {
            Class<?> tool = Class.forName(asked.get("tool").asText());
            tool.getMethod("main", String[].class).invoke(null, (Object) words.toArray(String[]::new));
        } catch (InvocationTargetException failed) {
            if (exited == null) {
                System.err.print("Exception in thread \"main\" ");
                failed.getCause().printStackTrace();
                exited = new Exited(1);
            }
        } finally {
            System.setOut(out);
            System.setErr(err);
        }
        ObjectNode answer = JSON.createObjectNode();
        answer.put("status", exited == null ? 0 : exited.status);
        answer.put("out", exited == null ? printed.toString() : exited.printed);
        answer.put("err", exited == null ? failures.toString() : exited.failures);
        return answer;
    }
}
