import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.message.DeleteShareGroupStateRequestData;
import org.apache.kafka.common.message.InitializeShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateSummaryRequestData;
import org.apache.kafka.common.message.WriteShareGroupStateRequestData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.share.PersisterStateBatchCombiner;
import org.apache.kafka.coordinator.share.ShareCoordinatorConfig;
import org.apache.kafka.coordinator.share.ShareCoordinatorRecordSerde;
import org.apache.kafka.coordinator.share.ShareCoordinatorShard;
import org.apache.kafka.coordinator.share.metrics.ShareCoordinatorMetrics;
import org.apache.kafka.server.share.persister.PersisterStateBatch;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Answers the lines of a transcript (tests/support/shares.py has the language) with Apache Kafka's own
 * ShareCoordinatorShard, and lines "C start known new" with the batches that its PersisterStateBatchCombiner makes.
 */
public class ShareOracle {
    private static final ShareCoordinatorRecordSerde SERDE = new ShareCoordinatorRecordSerde();
    private static final Map<Uuid, Integer> topics = new HashMap<>();
    private static long now = 0;
    private static long offset = 0;
    private static ShareCoordinatorShard shard;

    public static void main(String[] args) throws Exception {
        System.setProperty("log4j2.level", "OFF");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            System.out.println(answer(line.split(" ")));
        }
    }

    private static String answer(String[] f) {
        switch (f[0]) {
            case "F":
                begin(Integer.parseInt(f[1]), Integer.parseInt(f[2]));
                return "fresh";
            case "T":
                topics.put(id(f[1]), Integer.parseInt(f[2]));
                return "topic";
            case "N":
                now = Long.parseLong(f[1]);
                return "now";
            case "C":
                return "-" + text(new PersisterStateBatchCombiner(batches(f[2]), batches(f[3]), Long.parseLong(f[1]))
                    .combineStateBatches());
            case "G":
                Set<Uuid> gone = new HashSet<>();
                for (int i = 1; i < f.length; i++) {
                    gone.add(id(f[i]));
                }
                return replayed("G", shard.maybeCleanupShareState(gone));
            case "K":
                return replayed("K", shard.snapshotColdPartitions());
            case "P":
                return "P " + shard.lastRedundantOffset().response().map(String::valueOf).orElse("none");
            default:
                return asked(f, Integer.parseInt(f[3]));
        }
    }

    private static String asked(String[] f, int partition) {
        switch (f[0]) {
            case "I": {
                var data = new InitializeShareGroupStateRequestData.PartitionData().setPartition(partition)
                    .setStateEpoch(Integer.parseInt(f[4])).setStartOffset(Long.parseLong(f[5]));
                var topic = new InitializeShareGroupStateRequestData.InitializeStateData()
                    .setTopicId(id(f[2])).setPartitions(List.of(data));
                var result = shard.initializeState(
                    new InitializeShareGroupStateRequestData().setGroupId(f[1]).setTopics(List.of(topic)));
                return replayed("I " + result.response().results().get(0).partitions().get(0).errorCode(), result);
            }
            case "R": {
                var data = new ReadShareGroupStateRequestData.PartitionData().setPartition(partition)
                    .setLeaderEpoch(Integer.parseInt(f[4]));
                var topic = new ReadShareGroupStateRequestData.ReadStateData()
                    .setTopicId(id(f[2])).setPartitions(List.of(data));
                var result = shard.readStateAndMaybeUpdateLeaderEpoch(
                    new ReadShareGroupStateRequestData().setGroupId(f[1]).setTopics(List.of(topic)));
                var found = result.response().results().get(0).partitions().get(0);
                if (found.errorCode() != 0) {
                    return replayed("R " + found.errorCode(), result);
                }
                List<PersisterStateBatch> read = new ArrayList<>();
                found.stateBatches().forEach(b -> read.add(new PersisterStateBatch(
                    b.firstOffset(), b.lastOffset(), b.deliveryState(), b.deliveryCount())));
                String state = found.stateEpoch() + " " + found.startOffset() + " -" + text(read);
                return replayed("R 0 " + state, result);
            }
            case "W": {
                List<WriteShareGroupStateRequestData.StateBatch> written = new ArrayList<>();
                batches(f[8]).forEach(b -> written.add(new WriteShareGroupStateRequestData.StateBatch()
                    .setFirstOffset(b.firstOffset()).setLastOffset(b.lastOffset())
                    .setDeliveryCount(b.deliveryCount()).setDeliveryState(b.deliveryState())));
                var data = new WriteShareGroupStateRequestData.PartitionData().setPartition(partition)
                    .setStateEpoch(Integer.parseInt(f[4])).setLeaderEpoch(Integer.parseInt(f[5]))
                    .setStartOffset(Long.parseLong(f[6])).setDeliveryCompleteCount(Integer.parseInt(f[7]))
                    .setStateBatches(written);
                var topic = new WriteShareGroupStateRequestData.WriteStateData()
                    .setTopicId(id(f[2])).setPartitions(List.of(data));
                var result = shard.writeState(
                    new WriteShareGroupStateRequestData().setGroupId(f[1]).setTopics(List.of(topic)));
                return replayed("W " + result.response().results().get(0).partitions().get(0).errorCode(), result);
            }
            case "D": {
                var data = new DeleteShareGroupStateRequestData.PartitionData().setPartition(partition);
                var topic = new DeleteShareGroupStateRequestData.DeleteStateData()
                    .setTopicId(id(f[2])).setPartitions(List.of(data));
                var result = shard.deleteState(
                    new DeleteShareGroupStateRequestData().setGroupId(f[1]).setTopics(List.of(topic)));
                return replayed("D " + result.response().results().get(0).partitions().get(0).errorCode(), result);
            }
            case "S": {
                var data = new ReadShareGroupStateSummaryRequestData.PartitionData().setPartition(partition);
                var topic = new ReadShareGroupStateSummaryRequestData.ReadStateSummaryData()
                    .setTopicId(id(f[2])).setPartitions(List.of(data));
                var result = shard.readStateSummary(
                    new ReadShareGroupStateSummaryRequestData().setGroupId(f[1]).setTopics(List.of(topic)));
                var found = result.response().results().get(0).partitions().get(0);
                if (found.errorCode() != 0) {
                    return replayed("S " + found.errorCode(), result);
                }
                return replayed("S 0 " + found.stateEpoch() + " " + found.leaderEpoch() + " " + found.startOffset()
                    + " " + found.deliveryCompleteCount(), result);
            }
            default:
                throw new IllegalArgumentException(f[0]);
        }
    }

    private static void begin(int updatesPerSnapshot, int coldIntervalMs) {
        ClassLoader loader = ShareOracle.class.getClassLoader();
        topics.clear();
        now = 0;
        offset = 0;
        Time time = (Time) Proxy.newProxyInstance(loader, new Class<?>[] {Time.class},
            (proxy, method, arguments) -> method.getReturnType() == long.class ? now : null);
        Map<String, Object> properties = Map.of(
            "share.coordinator.snapshot.update.records.per.snapshot", updatesPerSnapshot,
            "share.coordinator.cold.partition.snapshot.interval.ms", coldIntervalMs);
        var config = new AbstractConfig(ShareCoordinatorConfig.CONFIG_DEF, properties, false);
        shard = new ShareCoordinatorShard.Builder(new ShareCoordinatorConfig(config))
            .withSnapshotRegistry(new SnapshotRegistry(new LogContext()))
            .withTime(time)
            .withCoordinatorMetrics(new ShareCoordinatorMetrics(new Metrics()))
            .withTopicPartition(new TopicPartition("__share_group_state", 0))
            .build();
        shard.onMetadataUpdate(null, (CoordinatorMetadataImage) Proxy.newProxyInstance(loader,
            new Class<?>[] {CoordinatorMetadataImage.class},
            (proxy, method, arguments) -> topicMetadata(loader, topics.getOrDefault((Uuid) arguments[0], 0))));
    }

    private static Optional<Object> topicMetadata(ClassLoader loader, int partitionCount) {
        if (partitionCount == 0) {
            return Optional.empty();
        }
        return Optional.of(Proxy.newProxyInstance(loader,
            new Class<?>[] {CoordinatorMetadataImage.TopicMetadata.class},
            (proxy, method, arguments) -> partitionCount));
    }

    /** The answer and the records, which the shard takes in as after their write. */
    private static String replayed(String answer, CoordinatorResult<?, CoordinatorRecord> result) {
        StringBuilder said = new StringBuilder(answer);
        for (CoordinatorRecord record : result.records()) {
            byte[] value = SERDE.serializeValue(record);
            said.append(" | ").append(HexFormat.of().formatHex(SERDE.serializeKey(record)));
            said.append(" ").append(value == null ? "null" : HexFormat.of().formatHex(value));
        }
        for (CoordinatorRecord record : result.records()) {
            shard.replay(offset++, -1, (short) -1, record);
        }
        return said.toString();
    }

    private static Uuid id(String number) {
        return new Uuid(0x1111111111111111L, Long.parseLong(number));
    }

    private static List<PersisterStateBatch> batches(String text) {
        List<PersisterStateBatch> result = new ArrayList<>();
        for (String batch : text.equals("-") ? new String[0] : text.split(";")) {
            String[] n = batch.split(",");
            result.add(new PersisterStateBatch(
                Long.parseLong(n[0]), Long.parseLong(n[1]), Byte.parseByte(n[3]), Short.parseShort(n[2])));
        }
        return result;
    }

    private static String text(List<PersisterStateBatch> batches) {
        StringBuilder said = new StringBuilder();
        for (PersisterStateBatch b : batches) {
            said.append(";" + b.firstOffset() + "," + b.lastOffset() + "," + b.deliveryCount() + "," + b.deliveryState());
        }
        return said.toString();
    }
}
