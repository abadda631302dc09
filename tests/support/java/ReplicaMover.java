import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeReplicaLogDirsResult.ReplicaLogDirInfo;
import org.apache.kafka.common.TopicPartitionReplica;

/**
 * Has a replica moved to another log directory by Kafka's admin client, and prints where it lies, or moves to, then.
 *
 * <p>Arguments: bootstrap servers, topic, partition, broker, path.
 */
public final class ReplicaMover {
    private ReplicaMover() {}

    public static void main(String[] words) throws Exception {
        int broker = Integer.parseInt(words[3]);
        TopicPartitionReplica replica = new TopicPartitionReplica(words[1], Integer.parseInt(words[2]), broker);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", words[0]))) {
            admin.alterReplicaLogDirs(Map.of(replica, words[4])).all().get();
            ReplicaLogDirInfo where = admin.describeReplicaLogDirs(java.util.Set.of(replica)).all().get().get(replica);
            String future = where.getFutureReplicaLogDir();
            System.out.println(future == null ? where.getCurrentReplicaLogDir() : future);
        }
    }
}
