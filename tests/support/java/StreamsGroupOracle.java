// Kafka's own computations of KIP-1071 for tests to compare with: one JSON request a line in, one JSON answer a line out.
// Started from its source with the jars of Kafka's newer group coordinator; `tests/support/java_oracle.py` speaks with it.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.coordinator.group.api.streams.assignor.TopologyDescriber;
import org.apache.kafka.coordinator.group.streams.CurrentAssignmentBuilder;
import org.apache.kafka.coordinator.group.streams.MemberState;
import org.apache.kafka.coordinator.group.streams.StreamsGroupMember;
import org.apache.kafka.coordinator.group.streams.TasksTuple;
import org.apache.kafka.coordinator.group.streams.TasksTupleWithEpochs;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentConfigsImpl;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberMetadataAndStateImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;

public class StreamsGroupOracle {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode asked = JSON.readTree(line);
            JsonNode answer = switch (asked.get("do").asText()) {
                case "assign" -> assign(asked);
                case "reconcile" -> reconcile(asked);
                default -> throw new IllegalArgumentException(line);
            };
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
        }
    }

    static JsonNode assign(JsonNode asked) {
        Map<String, MemberMetadataAndStateImpl> members = new HashMap<>();
        for (JsonNode member : asked.get("members")) {
            Map<String, Map<Integer, Long>> offsets = new HashMap<>();
            member.get("offsets").fields().forEachRemaining(part -> part.getValue().fields().forEachRemaining(
                task -> offsets.computeIfAbsent(part.getKey(), p -> new HashMap<>())
                    .put(Integer.valueOf(task.getKey()), task.getValue().asLong())));
            members.put(member.get("id").asText(), new MemberMetadataAndStateImpl(Optional.empty(), Optional.empty(),
                member.get("process").asText(), Map.of(), tasks(member.get("active")), tasks(member.get("standby")),
                Map.of(), offsets, Map.of()));
        }
        JsonNode parts = asked.get("subtopologies");
        TopologyDescriber describer = new TopologyDescriber() {
            public List<String> subtopologies() {
                List<String> names = new ArrayList<>();
                parts.fieldNames().forEachRemaining(names::add);
                return names;
            }

            public int maxNumInputPartitions(String part) {
                return parts.get(part).get("tasks").asInt();
            }

            public boolean isStateful(String part) {
                return parts.get(part).get("has_state").asBoolean();
            }
        };
        AssignmentConfigsImpl configs = new AssignmentConfigsImpl(asked.get("standby_replicas").asInt(), List.of());
        ObjectNode answer = JSON.createObjectNode();
        new StickyTaskAssignor().assign(new GroupSpecImpl(members, configs), describer).members().forEach(
            (memberId, assignment) -> answer.set(memberId, JSON.createObjectNode()
                .<ObjectNode>set("active", json(assignment.activeTasks()))
                .set("standby", json(assignment.standbyTasks()))));
        return answer;
    }

    static JsonNode reconcile(JsonNode asked) {
        JsonNode member = asked.get("member");
        StreamsGroupMember before = StreamsGroupMember.Builder.withDefaults("m")
            .setProcessId(member.get("process").asText())
            .setState(MemberState.valueOf(member.get("state").asText()))
            .setMemberEpoch(member.get("epoch").asInt())
            .setPreviousMemberEpoch(member.get("previous").asInt())
            .setAssignedTasks(held(member.get("assigned")))
            .setTasksPendingRevocation(held(member.get("revoking")))
            .build();
        JsonNode owners = asked.get("owners");
        JsonNode owned = asked.get("owned");
        JsonNode target = asked.get("target");
        StreamsGroupMember after = new CurrentAssignmentBuilder(before)
            .withTargetAssignment(asked.get("epoch").asInt(), tuple(target))
            .withCurrentActiveTaskProcessId((part, index) -> {
                JsonNode found = owners.get("active").get(part + "_" + index);
                return found == null ? null : found.asText();
            })
            .withCurrentStandbyTaskProcessIds((part, index) -> processes(owners.get("standby"), part, index))
            .withCurrentWarmupTaskProcessIds((part, index) -> processes(owners.get("warmup"), part, index))
            .withOwnedAssignment(owned.isNull() ? null : tuple(owned))
            .build();
        ObjectNode answer = JSON.createObjectNode()
            .put("state", after.state().name())
            .put("epoch", after.memberEpoch())
            .put("previous", after.previousMemberEpoch());
        answer.set("assigned", json(after.assignedTasks()));
        answer.set("revoking", json(after.tasksPendingRevocation()));
        return answer;
    }

    static Set<String> processes(JsonNode owners, String part, int index) {
        Set<String> found = new HashSet<>();
        if (owners.get(part + "_" + index) != null) {
            owners.get(part + "_" + index).forEach(process -> found.add(process.asText()));
        }
        return found;
    }

    static TasksTuple tuple(JsonNode tasks) {
        return new TasksTuple(tasks(tasks.get("active")), tasks(tasks.get("standby")), tasks(tasks.get("warmup")));
    }

    static TasksTupleWithEpochs held(JsonNode held) {
        Map<String, Map<Integer, Integer>> active = new HashMap<>();
        held.get("active").fields().forEachRemaining(part -> part.getValue().fields().forEachRemaining(
            task -> active.computeIfAbsent(part.getKey(), p -> new HashMap<>())
                .put(Integer.valueOf(task.getKey()), task.getValue().asInt())));
        return new TasksTupleWithEpochs(active, tasks(held.get("standby")), tasks(held.get("warmup")));
    }

    static Map<String, Set<Integer>> tasks(JsonNode tasks) {
        Map<String, Set<Integer>> found = new HashMap<>();
        tasks.fields().forEachRemaining(part -> part.getValue().forEach(
            index -> found.computeIfAbsent(part.getKey(), p -> new HashSet<>()).add(index.asInt())));
        return found;
    }

    static JsonNode json(Map<String, Set<Integer>> tasks) {
        ObjectNode found = JSON.createObjectNode();
        new TreeMap<>(tasks).forEach((part, indices) -> {
            ArrayNode listed = found.putArray(part);
            new TreeSet<>(indices).forEach(listed::add);
        });
        return found;
    }

    static JsonNode json(TasksTupleWithEpochs held) {
        ObjectNode active = JSON.createObjectNode();
        held.activeTasksWithEpochs().forEach((part, epochs) -> {
            ObjectNode listed = active.putObject(part);
            epochs.forEach((index, epoch) -> listed.put(index.toString(), epoch));
        });
        ObjectNode found = JSON.createObjectNode();
        found.set("active", active);
        found.set("standby", json(held.standbyTasks()));
        found.set("warmup", json(held.warmupTasks()));
        return found;
    }
}
