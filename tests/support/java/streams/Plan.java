import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;

/** Builds a topology from steps. Nodes of the DSL are in `nodes` by the id of the step that returned them. */
final class Plan {
    final Map<String, Object> nodes = new HashMap<>();
    final Map<String, Set<String>> branches = new HashMap<>();
    final List<String> seen = new ArrayList<>();
    final StreamsBuilder builder = new StreamsBuilder();

    Topology build(JsonNode steps, Properties config) {
        List<JsonNode> later = new ArrayList<>();
        for (JsonNode step : steps) {
            if (step.get("op").asText().startsWith("api_")) {
                later.add(step);
            } else {
                nodes.put(step.get("id").asText(), new Step(this, step).apply());
            }
        }
        Topology topology = later.size() == steps.size() ? new Topology() : builder.build(config);
        later.forEach(step -> new Step(this, step).extend(topology));
        return topology;
    }
}
