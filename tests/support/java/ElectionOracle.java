// Kafka's own elections of partition leaders, for tests to compare with: one JSON request a line in, one JSON answer a
// line out. Started from its source with Kafka's jars on the class path; `tests/support/java_oracle.py` speaks with it.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

public class ElectionOracle {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(JSON.writeValueAsString(elect(JSON.readTree(line))));
            System.out.flush();
        }
    }

    // The change that an election ("do") makes when only "usable" brokers can lead; without "leader" it makes none.
    static JsonNode elect(JsonNode asked) {
        int[] replicas = numbers(asked.get("replicas"));
        Uuid[] directories = new Uuid[replicas.length];
        Arrays.fill(directories, DirectoryId.UNASSIGNED);
        PartitionRegistration partition = new PartitionRegistration.Builder()
            .setReplicas(replicas)
            .setDirectories(directories)
            .setIsr(numbers(asked.get("isr")))
            .setElr(numbers(asked.get("elr")))
            .setLastKnownElr(numbers(asked.get("lastKnown")))
            .setLeader(asked.get("leader").asInt())
            .setLeaderRecoveryState(LeaderRecoveryState.of((byte) asked.get("recovery").asInt()))
            .setLeaderEpoch(7)
            .setPartitionEpoch(9)
            .build();
        Set<Integer> usable = Arrays.stream(numbers(asked.get("usable"))).boxed().collect(Collectors.toSet());
        Optional<ApiMessageAndVersion> built = new PartitionChangeBuilder(
                partition, Uuid.METADATA_TOPIC_ID, 0, usable::contains, MetadataVersion.IBP_4_0_IV3,
                asked.get("minIsr").asInt(), asked.get("keepsElr").asBoolean())
            .setTargetIsr(list(asked.get("targetIsr")))
            .setUncleanShutdownReplicas(list(asked.get("lost")))
            .setElection(PartitionChangeBuilder.Election.valueOf(asked.get("do").asText()))
            .setDefaultDirProvider(broker -> DirectoryId.UNASSIGNED)
            .build();
        ObjectNode answer = JSON.createObjectNode();
        if (built.isPresent()) {
            PartitionChangeRecord change = (PartitionChangeRecord) built.get().message();
            answer.put("leader", change.leader());
            answer.put("recovery", change.leaderRecoveryState());
            answer.set("isr", JSON.valueToTree(change.isr()));
            answer.set("elr", JSON.valueToTree(change.eligibleLeaderReplicas()));
            answer.set("lastKnown", JSON.valueToTree(change.lastKnownElr()));
            answer.put("version", built.get().version());
        }
        return answer;
    }

    static List<Integer> list(JsonNode array) {
        return Arrays.stream(numbers(array)).boxed().collect(Collectors.toList());
    }

    static int[] numbers(JsonNode array) {
        int[] found = new int[array.size()];
        for (int index = 0; index < found.length; index++) {
            found[index] = array.get(index).asInt();
        }
        return found;
    }
}
