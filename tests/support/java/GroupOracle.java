// Kafka's own arithmetic of KIP-848 for tests to compare with: one JSON request a line in, one JSON answer a line out.
// Started from its source with Kafka's jars on the class path; `tests/support/java_oracle.py` speaks with it.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.FencedMemberEpochException;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.Utils;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberState;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.coordinator.group.modern.consumer.CurrentAssignmentBuilder;

public class GroupOracle {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode asked = JSON.readTree(line);
            JsonNode answer = switch (asked.get("do").asText()) {
                case "assign" -> assign(asked);
                case "hash" -> hash(asked);
                case "match" -> match(asked);
                case "reconcile" -> reconcile(asked);
                default -> throw new IllegalArgumentException(line);
            };
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
        }
    }

    static JsonNode assign(JsonNode asked) {
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new LinkedHashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new LinkedHashMap<>();
        for (JsonNode member : asked.get("members")) {
            Set<Uuid> topics = new LinkedHashSet<>();
            member.get("topics").forEach(topic -> topics.add(id(topic.asText())));
            Map<Uuid, Set<Integer>> assigned = partitions(member.get("assigned"));
            String memberId = member.get("id").asText();
            assigned.forEach((topic, indices) -> indices.forEach(
                index -> owners.computeIfAbsent(topic, t -> new LinkedHashMap<>()).put(index, memberId)));
            JsonNode instance = member.get("instance");
            members.put(memberId, new MemberSubscriptionAndAssignmentImpl(Optional.empty(),
                instance.isNull() ? Optional.empty() : Optional.of(instance.asText()), topics, new Assignment(assigned)));
        }
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            public int numPartitions(Uuid topic) {
                return asked.get("partitions").get(hex(topic)).asInt();
            }

            public Set<String> racksForPartition(Uuid topic, int partition) {
                return Set.of();
            }
        };
        PartitionAssignor assignor = asked.get("assignor").asText().equals("range") ? new RangeAssignor() : new UniformAssignor();
        SubscriptionType type = asked.get("homogeneous").asBoolean() ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        ObjectNode answer = JSON.createObjectNode();
        assignor.assign(new GroupSpecImpl(members, type, owners), describer).members()
            .forEach((memberId, assignment) -> answer.set(memberId, json(assignment.partitions())));
        return answer;
    }

    static JsonNode hash(JsonNode asked) {
        Map<String, Topic> topics = new LinkedHashMap<>();
        for (JsonNode topic : asked.get("topics")) {
            List<List<String>> racks = new ArrayList<>();
            for (JsonNode partition : topic.get("racks")) {
                List<String> names = new ArrayList<>();
                partition.forEach(rack -> names.add(rack.asText()));
                racks.add(names);
            }
            topics.put(topic.get("name").asText(), new Topic(topic.get("name").asText(), id(topic.get("id").asText()), racks));
        }
        Map<String, Long> hashes = new LinkedHashMap<>();
        topics.keySet().forEach(name -> hashes.put(name, Utils.computeTopicHash(name, new Image(topics))));
        ObjectNode answer = JSON.createObjectNode().put("group", Long.toString(Utils.computeGroupHash(hashes)));
        hashes.forEach((name, value) -> answer.withObject("/topics").put(name, Long.toString(value)));
        return answer;
    }

    static JsonNode match(JsonNode asked) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            Pattern pattern = Pattern.compile(asked.get("pattern").asText());
            ArrayNode matches = answer.putArray("matches");
            for (JsonNode name : asked.get("names")) {
                if (pattern.matcher(name.asText()).matches()) {
                    matches.add(name.asText());
                }
            }
        } catch (PatternSyntaxException error) {
            answer.put("error", error.getDescription());
        }
        return answer;
    }

    static JsonNode reconcile(JsonNode asked) {
        JsonNode said = asked.get("member");
        Map<String, Topic> topics = new LinkedHashMap<>();
        asked.get("topics").fields().forEachRemaining(
            entry -> topics.put(entry.getKey(), new Topic(entry.getKey(), id(entry.getValue().asText()), List.of())));
        List<String> names = new ArrayList<>();
        said.get("topics").forEach(name -> names.add(name.asText()));
        ConsumerGroupMember member = new ConsumerGroupMember.Builder("member")
            .setMemberEpoch(said.get("epoch").asInt())
            .setPreviousMemberEpoch(said.get("previous_epoch").asInt())
            .setState(MemberState.fromValue((byte) said.get("state").asInt()))
            .setSubscribedTopicNames(names)
            .setAssignedPartitions(held(said.get("assigned")))
            .setPartitionsPendingRevocation(held(said.get("revoking")))
            .build();
        Map<Uuid, Map<Integer, Integer>> epochs = held(asked.get("partition_epochs"));
        List<ConsumerGroupHeartbeatRequestData.TopicPartitions> owned = null;
        if (!asked.get("owned").isNull()) {
            owned = new ArrayList<>();
            for (Map.Entry<Uuid, Set<Integer>> entry : partitions(asked.get("owned")).entrySet()) {
                owned.add(new ConsumerGroupHeartbeatRequestData.TopicPartitions()
                    .setTopicId(entry.getKey()).setPartitions(new ArrayList<>(entry.getValue())));
            }
        }
        ObjectNode answer = JSON.createObjectNode();
        try {
            ConsumerGroupMember after = new CurrentAssignmentBuilder(member)
                .withMetadataImage(new Image(topics))
                .withTargetAssignment(asked.get("epoch").asInt(), new Assignment(partitions(asked.get("target"))))
                .withHasSubscriptionChanged(asked.get("changed").asBoolean())
                .withCurrentPartitionEpoch((topic, index) -> epochs.getOrDefault(topic, Map.of()).getOrDefault(index, -1))
                .withOwnedTopicPartitions(owned)
                .build();
            answer.put("epoch", after.memberEpoch()).put("previous_epoch", after.previousMemberEpoch())
                .put("state", after.state().value());
            answer.set("assigned", jsonHeld(after.assignedPartitions()));
            answer.set("revoking", jsonHeld(after.partitionsPendingRevocation()));
        } catch (FencedMemberEpochException error) {
            answer.put("error", error.getMessage());
        }
        return answer;
    }

    static Uuid id(String hex) {
        return new Uuid(Long.parseUnsignedLong(hex.substring(0, 16), 16), Long.parseUnsignedLong(hex.substring(16), 16));
    }

    static String hex(Uuid id) {
        return String.format("%016x%016x", id.getMostSignificantBits(), id.getLeastSignificantBits());
    }

    static Map<Uuid, Set<Integer>> partitions(JsonNode said) {
        Map<Uuid, Set<Integer>> result = new LinkedHashMap<>();
        said.fields().forEachRemaining(entry -> {
            Set<Integer> indices = new LinkedHashSet<>();
            entry.getValue().forEach(index -> indices.add(index.asInt()));
            result.put(id(entry.getKey()), indices);
        });
        return result;
    }

    static Map<Uuid, Map<Integer, Integer>> held(JsonNode said) {
        Map<Uuid, Map<Integer, Integer>> result = new LinkedHashMap<>();
        said.fields().forEachRemaining(entry -> entry.getValue().fields().forEachRemaining(partition -> result
            .computeIfAbsent(id(entry.getKey()), t -> new LinkedHashMap<>())
            .put(Integer.parseInt(partition.getKey()), partition.getValue().asInt())));
        return result;
    }

    static JsonNode json(Map<Uuid, Set<Integer>> assigned) {
        Map<String, Set<Integer>> result = new TreeMap<>();
        assigned.forEach((topic, indices) -> result.put(hex(topic), new TreeSet<>(indices)));
        return JSON.valueToTree(result);
    }

    static JsonNode jsonHeld(Map<Uuid, Map<Integer, Integer>> held) {
        Map<String, Map<Integer, Integer>> result = new TreeMap<>();
        held.forEach((topic, epochs) -> result.put(hex(topic), new TreeMap<>(epochs)));
        return JSON.valueToTree(result);
    }

    record Topic(String name, Uuid id, List<List<String>> racks) implements CoordinatorMetadataImage.TopicMetadata {
        public int partitionCount() {
            return racks.size();
        }

        public List<String> partitionRacks(int partition) {
            return new ArrayList<>(racks.get(partition));
        }
    }

    record Image(Map<String, Topic> topics) implements CoordinatorMetadataImage {
        public Set<Uuid> topicIds() {
            Set<Uuid> ids = new LinkedHashSet<>();
            topics.values().forEach(topic -> ids.add(topic.id()));
            return ids;
        }

        public Set<String> topicNames() {
            return topics.keySet();
        }

        public Optional<CoordinatorMetadataImage.TopicMetadata> topicMetadata(String name) {
            return Optional.ofNullable(topics.get(name));
        }

        public Optional<CoordinatorMetadataImage.TopicMetadata> topicMetadata(Uuid id) {
            return topics.values().stream().filter(topic -> topic.id().equals(id))
                .map(topic -> (CoordinatorMetadataImage.TopicMetadata) topic).findFirst();
        }

        public CoordinatorMetadataDelta emptyDelta() {
            throw new UnsupportedOperationException();
        }

        public long version() {
            return 0;
        }

        public boolean isEmpty() {
            return topics.isEmpty();
        }
    }
}
