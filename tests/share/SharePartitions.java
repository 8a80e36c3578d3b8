package kafka.server.share;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Queue;
import java.util.Scanner;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;
import java.util.function.Supplier;

import org.apache.kafka.clients.consumer.internals.ShareAcquireMode;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchResponseData.AbortedTransaction;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.server.share.acknowledge.ShareAcknowledgementBatch;
import org.apache.kafka.server.share.fetch.DelayedShareFetchKey;
import org.apache.kafka.server.share.fetch.InFlightBatch;
import org.apache.kafka.server.share.fetch.InFlightState;
import org.apache.kafka.server.share.persister.*;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;

/**
 * Apache Kafka's own SharePartition, with nothing around it: a command on each line of its input, and on each line of
 * its output what came of it: answer | who was answered | writes | offsets | records | exception.
 */
public class SharePartitions {
    private static final Uuid TOPIC = new Uuid(1, 2);

    private long nowMs = 0;
    private final List<TimerTaskEntry> timers = new ArrayList<>();
    private final Queue<CompletableFuture<WriteShareGroupStateResult>> writes = new ArrayDeque<>();
    private final List<CompletableFuture<Void>> requests = new ArrayList<>();
    private final Set<Integer> answered = new HashSet<>();
    private final StringBuilder written = new StringBuilder();
    private ReadShareGroupStateResult stored;
    private SharePartition share;

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        SharePartitions world = new SharePartitions();
        for (String line; (line = lines.readLine()) != null;) {
            Scanner words = new Scanner(line);
            String command = words.next();
            if (command.equals("init"))
                world = new SharePartitions();
            String answer = "", exception = "";
            world.written.setLength(0);
            try {
                answer = world.run(command, words);
            } catch (Exception error) {
                exception = error.toString().replace('\n', ' ').replace('|', ' ');
            }
            System.out.println("> " + String.join("|", answer, world.answers(), world.written, world.offsets(),
                world.records(), exception));
            System.out.flush();
        }
    }

    private String run(String command, Scanner words) throws Exception {
        switch (command) {
            case "init" -> begin(words);
            case "fetch" -> {
                return share.canAcquireRecords() ? Long.toString(share.nextFetchOffset()) : "None";
            }
            case "acquire" -> {
                return acquire(words);
            }
            case "acknowledge" -> requests.add(share.acknowledge(words.next(), list(words, batch ->
                new ShareAcknowledgementBatch(batch.nextLong(), batch.nextLong(), list(batch, Scanner::nextByte)))));
            case "release" -> requests.add(share.releaseAcquiredRecords(words.next()));
            case "time" -> passTime(words.nextLong());
            case "written" -> writes.remove().complete(result(words.nextShort()));
            default -> throw new IllegalArgumentException(command);
        }
        return "";
    }

    private void begin(Scanner words) throws Exception {
        nowMs = words.nextLong();
        int locks = words.nextInt(), deliveries = words.nextInt(), lockMs = words.nextInt();
        List<PersisterStateBatch> none = List.of();
        stored = new ReadShareGroupStateResult.Builder().setTopicsData(List.of(new TopicData<>(TOPIC, List.of(
            PartitionFactory.newPartitionAllData(0, 7, 0, (short) 0, "", none))))).build();
        share = new SharePartition("group", new TopicIdPartition(TOPIC, 0, "topic"), 0, locks, deliveries, lockMs,
            new Timers(), new Clock(), new Store(), (Replicas) unsafe().allocateInstance(Replicas.class), noConfigs(),
            null);
        share.maybeInitialize().get();
    }

    private String acquire(Scanner words) {
        String member = words.next();
        ShareAcquireMode mode = ShareAcquireMode.forId(words.nextByte());
        int batchSize = words.nextInt(), maxRecords = words.nextInt();
        long fetchOffset = words.nextLong();
        List<RecordBatch> batches = list(words, batch -> batch(batch.nextLong(), batch.nextLong(), batch.nextLong(),
            batch.nextBoolean(), batch.nextBoolean()));
        List<AbortedTransaction> aborted = list(words, transaction ->
            new AbortedTransaction().setFirstOffset(transaction.nextLong()).setProducerId(transaction.nextLong()));
        StringBuilder acquired = new StringBuilder();
        share.acquire(member, mode, batchSize, maxRecords, fetchOffset, new FetchPartitionData(Errors.NONE, 0, 0,
            records(batches), Optional.empty(), OptionalLong.empty(), Optional.of(aborted), OptionalInt.empty(), false),
            FetchIsolation.TXN_COMMITTED).acquiredRecords().forEach(part -> acquired.append(part.firstOffset())
                .append(',').append(part.lastOffset()).append(',').append(part.deliveryCount()).append(' '));
        return acquired.toString().trim();
    }

    private void passTime(long toMs) {
        nowMs = toMs;
        Comparator<TimerTaskEntry> first = Comparator.comparingLong(entry -> entry.expirationMs);
        while (true) {
            Optional<TimerTaskEntry> due = timers.stream().filter(entry -> entry.expirationMs <= nowMs).min(first);
            if (due.isEmpty())
                return;
            timers.remove(due.get());
            if (!due.get().cancelled())
                due.get().timerTask.run();
        }
    }

    private static WriteShareGroupStateResult result(short error) {
        return new WriteShareGroupStateResult.Builder().setTopicsData(List.of(new TopicData<>(TOPIC, List.of(
            PartitionFactory.newPartitionErrorData(0, error, "no"))))).build();
    }

    // ---- what is there ----

    private String answers() throws InterruptedException {
        StringBuilder text = new StringBuilder();
        for (int place = 0; place < requests.size(); place++) {
            if (!requests.get(place).isDone() || !answered.add(place))
                continue;
            String error = "NONE";
            try {
                requests.get(place).get();
            } catch (ExecutionException refusal) {
                error = Errors.forException(refusal.getCause()).name() + "~" + refusal.getCause().getMessage();
            }
            text.append(place).append('=').append(error).append(';');
        }
        return text.toString();
    }

    private String offsets() {
        return share.startOffset() + " " + share.endOffset() + " " + share.deliveryCompleteCount();
    }

    private String records() {
        StringBuilder text = new StringBuilder();
        for (InFlightBatch batch : share.cachedState().values()) {
            for (long offset = batch.firstOffset(); offset <= batch.lastOffset(); offset++) {
                text.append(offset).append(':');
                if (batch.offsetState() == null) {
                    text.append(batch.batchState()).append(':').append(batch.batchDeliveryCount()).append(':')
                        .append(batch.batchMemberId()).append(':').append(batch.batchHasOngoingStateTransition());
                } else {
                    InFlightState state = batch.offsetState().get(offset);
                    text.append(state.state()).append(':').append(state.deliveryCount()).append(':')
                        .append(state.memberId()).append(':').append(state.hasOngoingStateTransition());
                }
                text.append(' ');
            }
        }
        return text.toString();
    }

    // ---- what is around it ----

    private class Clock implements Time {
        public long milliseconds() {
            return nowMs;
        }

        public long nanoseconds() {
            return nowMs * 1_000_000;
        }

        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }

        public long hiResClockMs() {
            return nowMs;
        }
    }

    private class Timers implements Timer {
        public void add(TimerTask task) {
            timers.add(new TimerTaskEntry(task, nowMs + task.delayMs));
        }

        public boolean advanceClock(long timeoutMs) {
            throw new UnsupportedOperationException();
        }

        public int size() {
            return timers.size();
        }

        public void close() {
        }
    }

    private class Store implements Persister {
        public CompletableFuture<ReadShareGroupStateResult> readState(ReadShareGroupStateParameters request) {
            return CompletableFuture.completedFuture(stored);
        }

        public CompletableFuture<WriteShareGroupStateResult> writeState(WriteShareGroupStateParameters request) {
            PartitionStateBatchData data = request.groupTopicPartitionData().topicsData().get(0).partitions().get(0);
            written.append(data.startOffset()).append(' ').append(data.deliveryCompleteCount());
            data.stateBatches().forEach(batch -> written.append(' ').append(batch.firstOffset()).append(',')
                .append(batch.lastOffset()).append(',').append(batch.deliveryState()).append(',')
                .append(batch.deliveryCount()));
            written.append(';');
            CompletableFuture<WriteShareGroupStateResult> result = new CompletableFuture<>();
            writes.add(result);
            return result;
        }

        public CompletableFuture<InitializeShareGroupStateResult> initializeState(
            InitializeShareGroupStateParameters request) {
            throw new UnsupportedOperationException();
        }

        public CompletableFuture<DeleteShareGroupStateResult> deleteState(DeleteShareGroupStateParameters request) {
            throw new UnsupportedOperationException();
        }

        public CompletableFuture<ReadShareGroupStateSummaryResult> readSummary(
            ReadShareGroupStateSummaryParameters request) {
            throw new UnsupportedOperationException();
        }

        public void stop() {
        }
    }

    /** Made without its constructor; only fetches that wait are told of changes. */
    private static class Replicas extends kafka.server.ReplicaManager {
        Replicas() {
            super(null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
                null, null, null, null);
        }

        @Override
        public void completeDelayedShareFetchRequest(DelayedShareFetchKey key) {
        }
    }

    private static GroupConfigManager noConfigs() throws Exception {
        GroupConfigManager manager = (GroupConfigManager) unsafe().allocateInstance(GroupConfigManager.class);
        Field configs = GroupConfigManager.class.getDeclaredField("configMap");
        configs.setAccessible(true);
        configs.set(manager, new ConcurrentHashMap<>());
        return manager;
    }

    private static sun.misc.Unsafe unsafe() throws Exception {
        Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        return (sun.misc.Unsafe) field.get(null);
    }

    private static RecordBatch batch(long base, long last, long producerId, boolean transactional, boolean aborts) {
        Object marker = answering(org.apache.kafka.common.record.internal.Record.class,
            Map.of("key", ByteBuffer.wrap(new byte[4])));
        return answering(RecordBatch.class, Map.of("baseOffset", base, "lastOffset", last, "producerId", producerId,
            "hasProducerId", producerId >= 0, "isTransactional", transactional, "isControlBatch", aborts,
            "iterator", List.of(marker).iterator(), "toString", base + "-" + last));
    }

    private static Records records(List<RecordBatch> batches) {
        return answering(Records.class, Map.of("batches", batches, "toString", batches.toString(),
            "lastBatch", Optional.of(batches.get(batches.size() - 1))));
    }

    /** An object of an interface whose methods answer what is given by their names. */
    private static <T> T answering(Class<T> type, Map<String, Object> answers) {
        return type.cast(Proxy.newProxyInstance(SharePartitions.class.getClassLoader(), new Class<?>[] {type},
            (self, method, values) -> {
                Object answer = answers.get(method.getName());
                if (answer == null)
                    throw new UnsupportedOperationException(method.getName());
                return answer;
            }));
    }

    /** A number of things, and then each of them. */
    private static <T> List<T> list(Scanner words, Function<Scanner, T> one) {
        List<T> things = new ArrayList<>();
        for (int left = words.nextInt(); left > 0; left--)
            things.add(one.apply(words));
        return things;
    }
}
