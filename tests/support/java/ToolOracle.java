// Kafka's own tools, one run after the other in one virtual machine: the class and the arguments of a run as JSON a line in;
// its status and what it printed as JSON a line out. Started from its source with Kafka's jars on the class path;
// `tests/support/java_oracle.py` speaks with it.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.apache.kafka.common.utils.Exit;

public class ToolOracle {
    static final ObjectMapper JSON = new ObjectMapper();

    /**
     * What one run printed, and its first exit; null before it. A thread belongs to the run in which it was started:
     * some tools leave an admin client behind, which goes on to warn of its broker while later tools run.
     */
    static final class Run {
        final ByteArrayOutputStream printed = new ByteArrayOutputStream();
        final ByteArrayOutputStream failures = new ByteArrayOutputStream();
        volatile Exited exited;
    }

    static final Run OUTSIDE_OF_RUNS = new Run();

    static final InheritableThreadLocal<Run> RUN = new InheritableThreadLocal<>() {
        @Override
        protected Run initialValue() {
            return OUTSIDE_OF_RUNS;
        }
    };

    /** What a tool's exit becomes. Some tools catch it and go on to say so: what they print from then on is dropped. */
    static final class Exited extends Error {
        final int status;
        final String printed;
        final String failures;

        Exited(int status, Run run) {
            super(null, null, false, false);
            this.status = status;
            this.printed = run.printed.toString();
            this.failures = run.failures.toString();
        }
    }

    /** Writes to a stream of the run to which the writing thread belongs. */
    static PrintStream streamOfRun(Function<Run, ByteArrayOutputStream> chosen) {
        return new PrintStream(new OutputStream() {
            @Override
            public void write(int one) {
                chosen.apply(RUN.get()).write(one);
            }

            @Override
            public void write(byte[] bytes, int offset, int length) {
                chosen.apply(RUN.get()).write(bytes, offset, length);
            }
        }, true);
    }

    public static void main(String[] arguments) throws Exception {
        Exit.Procedure exit = (status, message) -> {
            Run run = RUN.get();
            if (run.exited == null) {
                run.exited = new Exited(status, run);
            }
            throw run.exited;
        };
        Exit.setExitProcedure(exit);
        Exit.setHaltProcedure(exit);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream answers = System.out;
        System.setOut(streamOfRun(run -> run.printed));
        System.setErr(streamOfRun(run -> run.failures));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(JSON.writeValueAsString(run(JSON.readTree(line))));
            answers.flush();
        }
    }

    static JsonNode run(JsonNode asked) throws Exception {
        List<String> words = new ArrayList<>();
        asked.get("words").forEach(word -> words.add(word.asText()));
        Run run = new Run();
        RUN.set(run);
        try {
            Class<?> tool = Class.forName(asked.get("tool").asText());
            tool.getMethod("main", String[].class).invoke(null, (Object) words.toArray(String[]::new));
        } catch (InvocationTargetException failed) {
            if (run.exited == null) {
                System.err.print("Exception in thread \"main\" ");
                failed.getCause().printStackTrace();
                run.exited = new Exited(1, run);
            }
        }
        ObjectNode answer = JSON.createObjectNode();
        answer.put("status", run.exited == null ? 0 : run.exited.status);
        answer.put("out", run.exited == null ? run.printed.toString() : run.exited.printed);
        answer.put("err", run.exited == null ? run.failures.toString() : run.exited.failures);
        return answer;
    }
}
