import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterPartitionReassignmentsOptions;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.common.TopicPartition;

/**
 * Reassigns partitions of a topic by Kafka's admin client: a line for each with what became of it, and one with how many
 * are in progress then.
 *
 * <p>Arguments: bootstrap servers, whether the number of replicas may change, topic, and then for each partition its
 * number and its replicas with commas, or {@code cancel}.
 */
public final class Reassigner {
    private Reassigner() {}

    public static void main(String[] words) throws Exception {
        AlterPartitionReassignmentsOptions options =
            new AlterPartitionReassignmentsOptions().allowReplicationFactorChange(Boolean.parseBoolean(words[1]));
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", words[0]))) {
            for (int word = 3; word < words.length; word += 2) {
                TopicPartition partition = new TopicPartition(words[2], Integer.parseInt(words[word]));
                Optional<NewPartitionReassignment> target = Optional.empty();
                if (!words[word + 1].equals("cancel")) {
                    List<Integer> replicas = new ArrayList<>();
                    for (String broker : words[word + 1].split(",")) {
                        replicas.add(Integer.parseInt(broker));
                    }
                    target = Optional.of(new NewPartitionReassignment(replicas));
                }
                try {
                    admin.alterPartitionReassignments(Map.of(partition, target), options).all().get();
                    System.out.println("taken");
                } catch (ExecutionException refused) {
                    Throwable cause = refused.getCause();
                    System.out.println(cause.getClass().getSimpleName() + ": " + cause.getMessage());
                }
            }
            System.out.println(admin.listPartitionReassignments().reassignments().get().size() + " in progress");
        }
    }
}
