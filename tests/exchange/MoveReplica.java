import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeReplicaLogDirsResult.ReplicaLogDirInfo;
import org.apache.kafka.common.TopicPartitionReplica;

/**
 * Moves partition 0 of a topic of broker 1 to a log directory with Apache Kafka's own Admin client.
 *
 * <p>Arguments: bootstrap servers, topic, directory, and "wait" or "begin". Prints how the request was answered and,
 * when it has waited, where the replica is.
 */
public class MoveReplica {
    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        TopicPartitionReplica replica = new TopicPartitionReplica(args[1], 0, 1);
        try (Admin admin = Admin.create(properties)) {
            try {
                admin.alterReplicaLogDirs(Map.of(replica, args[2])).all().get();
                System.out.println("begun");
            } catch (ExecutionException refused) {
                System.out.println(refused.getCause().getClass().getSimpleName());
                return;
            }
            while (args[3].equals("wait")) {
                ReplicaLogDirInfo info = admin.describeReplicaLogDirs(List.of(replica)).all().get().get(replica);
                if (info.getFutureReplicaLogDir() == null && args[2].equals(info.getCurrentReplicaLogDir())) {
                    System.out.println("in " + info.getCurrentReplicaLogDir());
                    return;
                }
                Thread.sleep(50);
            }
        }
    }
}
