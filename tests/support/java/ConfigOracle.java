// Kafka's own word on settings, for tests to compare with: one JSON request a line in, one JSON answer a line out. Started
// from its source with Kafka's jars on the class path; `tests/support/java_oracle.py` speaks with it.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.config.DynamicConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

public class ConfigOracle {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Map<String, String> NODE = Map.of(
        "process.roles", "broker,controller",
        "node.id", "1",
        "controller.quorum.voters", "1@localhost:9093",
        "listeners", "PLAINTEXT://:9092,CONTROLLER://:9093",
        "controller.listener.names", "CONTROLLER",
        "listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT");

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream answers = System.out;
        System.setOut(System.err); // Whatever is logged is no answer.
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(JSON.writeValueAsString(check(JSON.readTree(line))));
            answers.flush();
        }
    }

    // What is wrong with a "topic"'s or a "broker"'s "configs", with those of a "node" that has no others, with a "change"
    // of those of a running broker as far as types show, or with all changes of one broker ("own") or of all ("default");
    // without "fault" nothing is. And "dynamic": the types of all keys that may change while a broker runs, by name.
    static JsonNode check(JsonNode asked) {
        if (asked.get("do").asText().equals("dynamic")) {
            ObjectNode types = JSON.createObjectNode();
            for (String name : DynamicConfig.Broker.names()) {
                ConfigDef.ConfigKey key = KafkaConfig.configDef().configKeys().get(name);
                types.put(name, key == null ? "LONG" : key.type.name()); // A quota's key is declared somewhere else.
            }
            return types;
        }
        Map<String, String> configs = new HashMap<>();
        asked.get("configs").fields().forEachRemaining(entry -> configs.put(entry.getKey(), entry.getValue().asText()));
        ObjectNode answer = JSON.createObjectNode();
        try {
            switch (asked.get("do").asText()) {
                case "topic" -> LogConfig.validate(Map.of(), configs, new HashMap<String, Object>(configs), false);
                case "change" -> {
                    Properties changed = new Properties();
                    changed.putAll(configs);
                    DynamicConfig.Broker.validate(changed);
                }
                case "own", "default" -> {
                    Properties changed = new Properties();
                    changed.putAll(configs);
                    KafkaConfig running = new KafkaConfig(new HashMap<>(NODE));
                    running.dynamicConfig().initialize(scala.Option.empty());
                    running.dynamicConfig().validate(changed, asked.get("do").asText().equals("own"));
                }
                case "node" -> new KafkaConfig(new HashMap<String, Object>(configs));
                default -> {
                    Map<String, Object> whole = new HashMap<>(NODE);
                    whole.putAll(configs);
                    new KafkaConfig(whole);
                }
            }
        } catch (RuntimeException refused) {
            answer.put("fault", String.valueOf(refused.getMessage()));
        }
        return answer;
    }
}
