import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Scanner;
import java.util.function.IntPredicate;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecordJsonConverter;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/** Reads partitions and what becomes of them, one JSON object per line, and prints the record of Apache Kafka. */
public class PartitionChanges {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            JsonNode change = JSON.readTree(lines.nextLine());
            Optional<ApiMessageAndVersion> record = builder(change).build();
            System.out.println(record.isEmpty() ? "null" : JSON.writeValueAsString(
                PartitionChangeRecordJsonConverter.write(
                    (PartitionChangeRecord) record.get().message(), record.get().version())));
        }
    }

    private static PartitionChangeBuilder builder(JsonNode change) {
        JsonNode now = change.get("partition");
        PartitionRegistration partition = new PartitionRegistration.Builder().
            setReplicas(array(now.get("replicas"))).
            setDirectories(directories(now.get("directories"))).
            setIsr(array(now.get("isr"))).
            setRemovingReplicas(array(now.get("removing"))).
            setAddingReplicas(array(now.get("adding"))).
            setElr(array(now.get("elr"))).
            setLastKnownElr(array(now.get("last_known_elr"))).
            setLeader(now.get("leader").asInt()).
            setLeaderRecoveryState(LeaderRecoveryState.of((byte) now.get("leader_recovery_state").asInt())).
            setLeaderEpoch(now.get("leader_epoch").asInt()).
            setPartitionEpoch(now.get("partition_epoch").asInt()).
            build();
        List<Integer> acceptable = list(change.get("acceptable"));
        IntPredicate isAcceptable = acceptable::contains;
        JsonNode target = change.get("target");
        PartitionChangeBuilder builder = new PartitionChangeBuilder(
            partition,
            Uuid.fromString("AAAAAAAAAAAAAAAAAAAAZA"),
            0,
            isAcceptable,
            MetadataVersion.fromFeatureLevel((short) change.get("metadata_version").asInt()),
            change.get("min_isr").asInt(),
            change.get("elr_enabled").asBoolean()).
            setElection(PartitionChangeBuilder.Election.valueOf(change.get("election").asText())).
            setDefaultDirProvider(broker -> new Uuid(0, 1000 + broker));
        if (target.has("isr")) builder.setTargetIsr(list(target.get("isr")));
        if (target.has("replicas")) builder.setTargetReplicas(list(target.get("replicas")));
        if (target.has("removing")) builder.setTargetRemoving(list(target.get("removing")));
        if (target.has("adding")) builder.setTargetAdding(list(target.get("adding")));
        if (target.has("lost")) builder.setUncleanShutdownReplicas(List.of(target.get("lost").asInt()));
        if (target.has("leader_recovery_state")) builder.setTargetLeaderRecoveryState(
            LeaderRecoveryState.of((byte) target.get("leader_recovery_state").asInt()));
        return builder;
    }

    private static Uuid[] directories(JsonNode numbers) {
        return list(numbers).stream().map(number -> new Uuid(0, number)).toArray(Uuid[]::new);
    }

    private static int[] array(JsonNode numbers) {
        return list(numbers).stream().mapToInt(Integer::intValue).toArray();
    }

    private static List<Integer> list(JsonNode numbers) {
        List<Integer> list = new ArrayList<>();
        numbers.forEach(number -> list.add(number.asInt()));
        return list;
    }
}
