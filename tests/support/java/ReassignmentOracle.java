// Kafka's own reassignments of partitions, for tests to compare with: one JSON request a line in, one JSON answer a line
// out. Started from its source with Kafka's jars on the class path; `tests/support/java_oracle.py` speaks with it.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

public class ReassignmentOracle {
    static final ObjectMapper JSON = new ObjectMapper();
    static final String CONTROLLER = "org.apache.kafka.controller.";

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(JSON.writeValueAsString(reassign(JSON.readTree(line))));
            System.out.flush();
        }
    }

    // A broker's directory is its own number, wherever it has a replica.
    static Uuid directory(int broker) {
        return new Uuid(0L, 100L + broker);
    }

    // The change by which a partition gets the replicas of "target" ("do": reassign), or those of before (cancel), when
    // only "usable" brokers can lead; {} where it changes nothing, "unclean" where nobody in sync would be left.
    static JsonNode reassign(JsonNode asked) throws Exception {
        int[] replicas = numbers(asked.get("replicas"));
        PartitionRegistration partition = new PartitionRegistration.Builder()
            .setReplicas(replicas)
            .setDirectories(Arrays.stream(replicas).mapToObj(ReassignmentOracle::directory).toArray(Uuid[]::new))
            .setIsr(numbers(asked.get("isr")))
            .setAddingReplicas(numbers(asked.get("adding")))
            .setRemovingReplicas(numbers(asked.get("removing")))
            .setLeader(asked.get("leader").asInt())
            .setLeaderRecoveryState(LeaderRecoveryState.RECOVERED)
            .setLeaderEpoch(7)
            .setPartitionEpoch(9)
            .build();
        Set<Integer> usable = Arrays.stream(numbers(asked.get("usable"))).boxed().collect(Collectors.toSet());
        PartitionChangeBuilder builder = new PartitionChangeBuilder(
            partition, Uuid.METADATA_TOPIC_ID, 0, usable::contains, MetadataVersion.IBP_4_0_IV3, 1, false)
            .setDefaultDirProvider(ReassignmentOracle::directory);
        ObjectNode answer = JSON.createObjectNode();
        if (asked.get("do").asText().equals("cancel")) {
            Object revert = made("PartitionReassignmentRevert", new Class<?>[] {PartitionRegistration.class}, partition);
            if ((boolean) call(revert, "unclean")) {
                return answer.put("unclean", true);
            }
            builder.setTargetIsr(brokers(revert, "isr"))
                .setTargetReplicas(brokers(revert, "replicas"))
                .setTargetRemoving(List.of())
                .setTargetAdding(List.of());
        } else {
            Object planned = made(
                "PartitionReassignmentReplicas",
                new Class<?>[] {PartitionAssignment.class, PartitionAssignment.class},
                assignment(replicas), assignment(numbers(asked.get("target"))));
            // As its caller in ReplicationControlManager does it: what is empty is not set.
            if (!brokers(planned, "replicas").equals(boxed(replicas))) {
                builder.setTargetReplicas(brokers(planned, "replicas"));
            }
            if (!brokers(planned, "removing").isEmpty()) {
                builder.setTargetRemoving(brokers(planned, "removing"));
            }
            if (!brokers(planned, "adding").isEmpty()) {
                builder.setTargetAdding(brokers(planned, "adding"));
            }
        }
        Optional<ApiMessageAndVersion> built = builder.build();
        if (built.isPresent()) {
            PartitionChangeRecord change = (PartitionChangeRecord) built.get().message();
            answer.put("leader", change.leader());
            answer.set("isr", JSON.valueToTree(change.isr()));
            answer.set("replicas", JSON.valueToTree(change.replicas()));
            answer.set("adding", JSON.valueToTree(change.addingReplicas()));
            answer.set("removing", JSON.valueToTree(change.removingReplicas()));
            List<Uuid> directories = change.directories();
            answer.set("directories", directories == null ? null : JSON.valueToTree(
                directories.stream().map(id -> id.getLeastSignificantBits() - 100).toList()));
        }
        return answer;
    }

    static PartitionAssignment assignment(int[] replicas) {
        return new PartitionAssignment(boxed(replicas), ReassignmentOracle::directory);
    }

    static Object made(String name, Class<?>[] types, Object... values) throws Exception {
        Constructor<?> constructor = Class.forName(CONTROLLER + name).getDeclaredConstructor(types);
        constructor.setAccessible(true);
        return constructor.newInstance(values);
    }

    static Object call(Object from, String what) throws Exception {
        Method method = from.getClass().getDeclaredMethod(what);
        method.setAccessible(true);
        return method.invoke(from);
    }

    @SuppressWarnings("unchecked")
    static List<Integer> brokers(Object from, String what) throws Exception {
        return new ArrayList<>((List<Integer>) call(from, what));
    }

    static List<Integer> boxed(int[] brokers) {
        return Arrays.stream(brokers).boxed().toList();
    }

    static int[] numbers(JsonNode array) {
        int[] found = new int[array.size()];
        for (int index = 0; index < found.length; index++) {
            found[index] = array.get(index).asInt();
        }
        return found;
    }
}
