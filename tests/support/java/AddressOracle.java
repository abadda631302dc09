// What Kafka's Java client makes of "servers", the text of bootstrap.servers: one JSON request a line in, one JSON answer a
// line out. Started from its source with Kafka's jars on the class path; `tests/support/java_oracle.py` speaks with it.

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.ClientUtils;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.config.ConfigException;

public class AddressOracle {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream answers = System.out;
        System.setOut(System.err); // Whatever is logged is no answer.
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(json.writeValueAsString(parse(json.readTree(line).get("servers").asText())));
            answers.flush();
        }
    }

    // Every server as [host, port], or the "fault".
    static Map<String, Object> parse(String servers) {
        try {
            AdminClientConfig config = new AdminClientConfig(Map.of("bootstrap.servers", servers));
            List<List<Object>> parsed = ClientUtils.parseAndValidateAddresses(config).stream()
                .map(address -> List.<Object>of(address.getHostString(), address.getPort())).toList();
            return Map.of("servers", parsed);
        } catch (ConfigException refused) {
            return Map.of("fault", refused.getMessage());
        }
    }
}
