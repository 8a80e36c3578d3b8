import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Scanner;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/** Reads groups, one JSON object per line, and prints what Apache Kafka's assignors make of them. */
public class Assignors {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            JsonNode group = JSON.readTree(lines.nextLine());
            ConsumerGroupPartitionAssignor assignor =
                group.get("assignor").asText().equals("range") ? new RangeAssignor() : new UniformAssignor();
            System.out.println(JSON.writeValueAsString(assign(assignor, group)));
        }
    }

    private static Map<String, Map<String, Set<Integer>>> assign(ConsumerGroupPartitionAssignor assignor, JsonNode group) {
        Map<Uuid, Integer> counts = new HashMap<>();
        group.get("topics").fields().forEachRemaining(
            topic -> counts.put(Uuid.fromString(topic.getKey()), topic.getValue().asInt()));
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        group.get("members").fields().forEachRemaining(entry -> {
            JsonNode member = entry.getValue();
            Set<Uuid> topicIds = new HashSet<>();
            member.get("topics").forEach(topic -> topicIds.add(Uuid.fromString(topic.asText())));
            List<ConsumerGroupTargetAssignmentMemberValue.TopicPartition> target = new ArrayList<>();
            member.get("assignment").fields().forEachRemaining(topic -> {
                Uuid topicId = Uuid.fromString(topic.getKey());
                List<Integer> partitions = new ArrayList<>();
                topic.getValue().forEach(partition -> {
                    partitions.add(partition.asInt());
                    owners.computeIfAbsent(topicId, __ -> new HashMap<>()).put(partition.asInt(), entry.getKey());
                });
                target.add(new ConsumerGroupTargetAssignmentMemberValue.TopicPartition()
                    .setTopicId(topicId).setPartitions(partitions));
            });
            members.put(entry.getKey(), new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(),
                Optional.ofNullable(member.get("instance").isNull() ? null : member.get("instance").asText()),
                topicIds,
                Assignment.fromRecord(new ConsumerGroupTargetAssignmentMemberValue().setTopicPartitions(target))));
        });
        SubscriptionType type = group.get("homogeneous").asBoolean() ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            public int numPartitions(Uuid topicId) {
                return counts.getOrDefault(topicId, -1);
            }

            public Set<String> racksForPartition(Uuid topicId, int partition) {
                return Set.of();
            }
        };
        Map<String, MemberAssignment> assigned = assignor
            .assign(new GroupSpecImpl(Collections.unmodifiableMap(members), type, owners), describer).members();
        Map<String, Map<String, Set<Integer>>> result = new TreeMap<>();
        assigned.forEach((memberId, assignment) -> {
            Map<String, Set<Integer>> topics = new TreeMap<>();
            assignment.partitions().forEach((topicId, partitions) -> topics.put(topicId.toString(), new TreeSet<>(partitions)));
            result.put(memberId, topics);
        });
        return result;
    }
}
