import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Scanner;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.StreamsGroupMemberMetadataValue;
import org.apache.kafka.coordinator.group.generated.StreamsGroupTopologyValue;
import org.apache.kafka.coordinator.group.generated.StreamsGroupTopologyValueJsonConverter;
import org.apache.kafka.coordinator.group.streams.CurrentAssignmentBuilder;
import org.apache.kafka.coordinator.group.streams.MemberState;
import org.apache.kafka.coordinator.group.streams.StreamsCoordinatorRecordHelpers;
import org.apache.kafka.coordinator.group.streams.StreamsGroupMember;
import org.apache.kafka.coordinator.group.streams.StreamsTopology;
import org.apache.kafka.coordinator.group.streams.TasksTuple;
import org.apache.kafka.coordinator.group.streams.TasksTupleWithEpochs;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentMemberSpec;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.TopologyDescriber;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredTopology;
import org.apache.kafka.coordinator.group.streams.topics.InternalTopicManager;
import org.slf4j.helpers.NOPLogger;

/** Reads questions about streams groups, one JSON object per line, and prints what Apache Kafka answers. */
public class StreamsGroups {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            JsonNode question = JSON.readTree(lines.nextLine());
            Object answer = switch (question.get("about").asText()) {
                case "assignment" -> assign(question);
                case "topology" -> configure(question);
                case "records" -> write(question);
                default -> reconcile(question);
            };
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    private static Map<String, Object> assign(JsonNode group) {
        Map<String, AssignmentMemberSpec> members = new HashMap<>();
        group.get("members").fields().forEachRemaining(entry -> {
            JsonNode member = entry.getValue();
            members.put(entry.getKey(), new AssignmentMemberSpec(
                Optional.empty(), Optional.empty(),
                tasks(member.get("active")), tasks(member.get("standby")), tasks(member.get("warmup")),
                member.get("process").asText(), Map.of(), Map.of(), Map.of()));
        });
        JsonNode subtopologies = group.get("subtopologies");
        List<String> names = new ArrayList<>(new TreeSet<>(fieldNames(subtopologies)));
        TopologyDescriber describer = new TopologyDescriber() {
            public List<String> subtopologies() {
                return names;
            }

            public int maxNumInputPartitions(String name) {
                return subtopologies.get(name).get(0).asInt();
            }

            public boolean isStateful(String name) {
                return subtopologies.get(name).get(1).asBoolean();
            }
        };
        Map<String, String> configs = Map.of("num.standby.replicas", group.get("standbys").asText());
        Map<String, Object> result = new TreeMap<>();
        new StickyTaskAssignor().assign(new GroupSpecImpl(members, configs), describer).members().forEach(
            (name, assignment) -> result.put(name, shown(assignment)));
        return result;
    }

    private static Map<String, Object> shown(MemberAssignment assignment) {
        return Map.of(
            "active", sorted(assignment.activeTasks()),
            "standby", sorted(assignment.standbyTasks()),
            "warmup", sorted(assignment.warmupTasks()));
    }

    private static Map<String, Object> configure(JsonNode question) {
        StreamsGroupTopologyValue value =
            StreamsGroupTopologyValueJsonConverter.read(question.get("topology"), (short) 0);
        Map<String, Object> result = new LinkedHashMap<>();
        try {
            ConfiguredTopology topology = InternalTopicManager.configureTopics(
                NOPLogger.NOP_LOGGER, "group", "member", 0L, StreamsTopology.fromRecord(value),
                image(question.get("topics")), Time.SYSTEM);
            result.put("ready", topology.isReady());
            result.put("tasks", topology.subtopologies().map(parts -> {
                Map<String, Integer> counts = new LinkedHashMap<>();
                parts.forEach((name, part) -> counts.put(name, part.numberOfTasks()));
                return counts;
            }).orElse(null));
            List<Object> missing = new ArrayList<>();
            topology.internalTopicsToBeCreated().forEach((name, topic) -> {
                Map<String, String> configs = new TreeMap<>();
                topic.configs().forEach(config -> configs.put(config.name(), config.value()));
                missing.add(List.of(name, topic.numPartitions(), topic.replicationFactor(), configs));
            });
            result.put("missing", missing);
            result.put("problem", topology.topicConfigurationException()
                .map(problem -> List.<Object>of((int) problem.status().code(), problem.getMessage())).orElse(null));
        } catch (ApiException error) {
            result.put("error", List.of(Errors.forException(error).code(), error.getMessage()));
        } catch (RuntimeException error) {
            result.put("error", List.of(-1));
        }
        return result;
    }

    private static Map<String, Object> reconcile(JsonNode question) {
        JsonNode said = question.get("member");
        StreamsGroupMember member = new StreamsGroupMember(
            "member", said.get("epoch").asInt(), said.get("previous").asInt(),
            MemberState.fromValue((byte) said.get("state").asInt()),
            Optional.empty(), Optional.empty(), "", "", 0, 0, said.get("process").asText(),
            Optional.empty(), Map.of(), owned(said.get("assigned")), owned(said.get("pending")));
        JsonNode holders = question.get("holders");
        Map<String, Object> result = new LinkedHashMap<>();
        try {
            StreamsGroupMember after = new CurrentAssignmentBuilder(member)
                .withTargetAssignment(question.get("epoch").asInt(), tuple(question.get("target")))
                .withCurrentActiveTaskProcessId((name, partition) -> {
                    JsonNode holder = holders.get("active").get(name + "_" + partition);
                    return holder == null ? null : holder.asText();
                })
                .withCurrentStandbyTaskProcessIds((name, partition) -> strings(holders.get("standby"), name, partition))
                .withCurrentWarmupTaskProcessIds((name, partition) -> strings(holders.get("warmup"), name, partition))
                .withOwnedAssignment(question.get("owned").isNull() ? null : tuple(question.get("owned")))
                .build();
            result.put("epoch", after.memberEpoch());
            result.put("previous", after.previousMemberEpoch());
            result.put("state", (int) after.state().value());
            result.put("assigned", shown(after.assignedTasks()));
            result.put("pending", shown(after.tasksPendingRevocation()));
        } catch (ApiException error) {
            result.put("error", List.of(Errors.forException(error).code(), error.getMessage()));
        }
        return result;
    }

    private static List<Object> write(JsonNode question) {
        String group = question.get("group").asText();
        JsonNode said = question.get("member");
        Map<String, String> tags = new HashMap<>();
        said.get("tags").fields().forEachRemaining(tag -> tags.put(tag.getKey(), tag.getValue().asText()));
        JsonNode endpoint = said.get("endpoint");
        StreamsGroupMember member = new StreamsGroupMember(
            "member", said.get("epoch").asInt(), said.get("previous").asInt(),
            MemberState.fromValue((byte) said.get("state").asInt()),
            Optional.empty(), Optional.ofNullable(said.get("rack").isNull() ? null : said.get("rack").asText()),
            said.get("client").asText(), "/127.0.0.1", said.get("timeout").asInt(), said.get("topology").asInt(),
            said.get("process").asText(),
            endpoint.isNull() ? Optional.empty() : Optional.of(new StreamsGroupMemberMetadataValue.Endpoint()
                .setHost(endpoint.get(0).asText()).setPort(endpoint.get(1).asInt())),
            tags, owned(said.get("assigned")), owned(said.get("pending")));
        int epoch = question.get("epoch").asInt();
        List<CoordinatorRecord> records = List.of(
            StreamsCoordinatorRecordHelpers.newStreamsGroupMetadataRecord(
                group, epoch, question.get("hash").asLong(), question.get("validated").asInt(),
                Map.of("num.standby.replicas", question.get("standbys").asText())),
            StreamsCoordinatorRecordHelpers.newStreamsGroupTopologyRecord(
                group, StreamsGroupTopologyValueJsonConverter.read(question.get("topology"), (short) 0)),
            StreamsCoordinatorRecordHelpers.newStreamsGroupMemberRecord(group, member),
            StreamsCoordinatorRecordHelpers.newStreamsGroupTargetAssignmentMetadataRecord(
                group, epoch, question.get("timestamp").asLong()),
            StreamsCoordinatorRecordHelpers.newStreamsGroupTargetAssignmentRecord(
                group, "member", tuple(question.get("target"))),
            StreamsCoordinatorRecordHelpers.newStreamsGroupCurrentAssignmentRecord(group, member));
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        List<Object> result = new ArrayList<>();
        for (CoordinatorRecord record : records) {
            result.add(List.of(
                HexFormat.of().formatHex(serde.serializeKey(record)),
                HexFormat.of().formatHex(serde.serializeValue(record))));
        }
        return result;
    }

    private static Map<String, Object> shown(TasksTupleWithEpochs tasks) {
        return Map.of(
            "active", new TreeMap<>(tasks.activeTasksWithEpochs()),
            "standby", sorted(tasks.standbyTasks()),
            "warmup", sorted(tasks.warmupTasks()));
    }

    private static TasksTuple tuple(JsonNode tasks) {
        return new TasksTuple(tasks(tasks.get("active")), tasks(tasks.get("standby")), tasks(tasks.get("warmup")));
    }

    private static TasksTupleWithEpochs owned(JsonNode tasks) {
        Map<String, Map<Integer, Integer>> active = new HashMap<>();
        tasks.get("active").fields().forEachRemaining(part -> {
            Map<Integer, Integer> epochs = new HashMap<>();
            part.getValue().fields().forEachRemaining(
                epoch -> epochs.put(Integer.valueOf(epoch.getKey()), epoch.getValue().asInt()));
            active.put(part.getKey(), epochs);
        });
        return new TasksTupleWithEpochs(active, tasks(tasks.get("standby")), tasks(tasks.get("warmup")));
    }

    private static Map<String, Set<Integer>> tasks(JsonNode tasks) {
        Map<String, Set<Integer>> found = new HashMap<>();
        tasks.fields().forEachRemaining(part -> {
            Set<Integer> partitions = new HashSet<>();
            part.getValue().forEach(partition -> partitions.add(partition.asInt()));
            found.put(part.getKey(), partitions);
        });
        return found;
    }

    private static Map<String, Set<Integer>> sorted(Map<String, Set<Integer>> tasks) {
        Map<String, Set<Integer>> found = new TreeMap<>();
        tasks.forEach((name, partitions) -> found.put(name, new TreeSet<>(partitions)));
        return found;
    }

    private static Set<String> strings(JsonNode holders, String name, int partition) {
        Set<String> found = new HashSet<>();
        JsonNode processes = holders.get(name + "_" + partition);
        if (processes != null) {
            processes.forEach(process -> found.add(process.asText()));
        }
        return found;
    }

    private static List<String> fieldNames(JsonNode node) {
        List<String> names = new ArrayList<>();
        node.fieldNames().forEachRemaining(names::add);
        return names;
    }

    private static CoordinatorMetadataImage image(JsonNode topics) {
        return new CoordinatorMetadataImage() {
            public Set<Uuid> topicIds() {
                return Set.of();
            }

            public Set<String> topicNames() {
                return new HashSet<>(fieldNames(topics));
            }

            public Optional<TopicMetadata> topicMetadata(String name) {
                return topics.has(name) ? Optional.of(topic(name, topics.get(name).asInt())) : Optional.empty();
            }

            public Optional<TopicMetadata> topicMetadata(Uuid topicId) {
                return Optional.empty();
            }

            public CoordinatorMetadataDelta emptyDelta() {
                return null;
            }

            public long version() {
                return 0;
            }

            public boolean isEmpty() {
                return false;
            }
        };
    }

    private static CoordinatorMetadataImage.TopicMetadata topic(String name, int partitions) {
        return new CoordinatorMetadataImage.TopicMetadata() {
            public String name() {
                return name;
            }

            public Uuid id() {
                return Uuid.ZERO_UUID;
            }

            public int partitionCount() {
                return partitions;
            }

            public List<String> partitionRacks(int partition) {
                return List.of();
            }
        };
    }
}
