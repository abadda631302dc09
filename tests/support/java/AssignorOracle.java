import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * What Kafka's own assignors answer: a line of JSON in, a line of JSON out.
 *
 * <p>In: {"assignor": "range", "partitions": {"t": 3}, "members": [{"id": "a", "topics": ["t"], "userData": base64 or null,
 * "owned": [["t", 0]], "generation": -1, "instance": null, "rack": null}], "racks": {"t": [["a", "b"], [], ["c"]]}}, the
 * racks by topic and partition, of topics that have any; members go into a HashMap in that order, as in Kafka's
 * consumer. Out: {"a": [["t", 0]]}, or {"error": text} where the assignor throws.
 */
public final class AssignorOracle {
    private static final Iterable<JsonNode> NO_RACKS = new ArrayList<>();

    private AssignorOracle() {}

    public static void main(String[] words) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(json.writeValueAsString(answer(json, json.readTree(line))));
        }
    }

    private static ObjectNode answer(ObjectMapper json, JsonNode question) {
        Map<String, List<PartitionInfo>> partitions = new HashMap<>();
        JsonNode racks = question.get("racks");
        question.get("partitions").fields().forEachRemaining(
                e -> partitions.put(e.getKey(), partitions(e.getKey(), e.getValue().asInt(), racks.get(e.getKey()))));
        Map<String, Subscription> members = new HashMap<>();
        question.get("members").forEach(member -> members.put(member.get("id").asText(), subscription(member)));
        ObjectNode answer = json.createObjectNode();
        try {
            assignor(question.get("assignor").asText()).assignPartitions(partitions, members).forEach((member, assigned) -> {
                ArrayNode list = answer.putArray(member);
                assigned.forEach(partition -> list.addArray().add(partition.topic()).add(partition.partition()));
            });
        } catch (RuntimeException error) {
            return json.createObjectNode().put("error", error.toString());
        }
        return answer;
    }

    private static List<PartitionInfo> partitions(String topic, int count, JsonNode racks) {
        List<PartitionInfo> partitions = new ArrayList<>();
        for (int index = 0; index < count; index++) {
            List<Node> replicas = new ArrayList<>();
            for (JsonNode rack : racks == null ? NO_RACKS : racks.get(index)) {
                replicas.add(new Node(replicas.size(), "h", 1, rack.asText()));
            }
            Node[] nodes = replicas.isEmpty() ? new Node[] {Node.noNode()} : replicas.toArray(new Node[0]);
            partitions.add(new PartitionInfo(topic, index, nodes[0], nodes, nodes));
        }
        return partitions;
    }

    private static AbstractPartitionAssignor assignor(String name) {
        switch (name) {
            case "range": return new RangeAssignor();
            case "roundrobin": return new RoundRobinAssignor();
            case "sticky": return new StickyAssignor();
            case "cooperative-sticky": return new CooperativeStickyAssignor();
            default: throw new IllegalArgumentException(name);
        }
    }

    private static Subscription subscription(JsonNode member) {
        List<String> topics = new ArrayList<>();
        member.get("topics").forEach(topic -> topics.add(topic.asText()));
        List<TopicPartition> owned = new ArrayList<>();
        member.get("owned").forEach(pair -> owned.add(new TopicPartition(pair.get(0).asText(), pair.get(1).asInt())));
        JsonNode data = member.get("userData");
        ByteBuffer userData = data.isNull() ? null : ByteBuffer.wrap(Base64.getDecoder().decode(data.asText()));
        int generation = member.get("generation").asInt();
        JsonNode rack = member.get("rack");
        Optional<String> rackId = rack.isNull() ? Optional.empty() : Optional.of(rack.asText());
        Subscription made = new Subscription(topics, userData, owned, generation, rackId);
        if (!member.get("instance").isNull()) {
            made.setGroupInstanceId(Optional.of(member.get("instance").asText()));
        }
        return made;
    }
}
