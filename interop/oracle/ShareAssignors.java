import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.Scanner;
import java.util.Set;
import java.util.TreeMap;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.generated.ShareGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/** Reads share groups, one JSON object per line, and prints what Apache Kafka's assignor makes of them, in its order; null where it fails. */
public class ShareAssignors {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            JsonNode group = JSON.readTree(lines.nextLine());
            try {
                System.out.println(JSON.writeValueAsString(assign(group)));
            } catch (NoSuchElementException failed) {
                System.out.println("null");
            }
        }
    }

    private static Map<String, List<List<Object>>> assign(JsonNode group) {
        Map<Uuid, Integer> counts = new HashMap<>();
        Map<Uuid, Set<Integer>> assignable = new HashMap<>();
        group.get("topics").fields().forEachRemaining(topic -> {
            Uuid topicId = Uuid.fromString(topic.getKey());
            counts.put(topicId, topic.getValue().get("count").asInt());
            topic.getValue().get("assignable").forEach(
                partition -> assignable.computeIfAbsent(topicId, __ -> new HashSet<>()).add(partition.asInt()));
        });
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        group.get("members").fields().forEachRemaining(entry -> {
            JsonNode member = entry.getValue();
            Set<Uuid> topicIds = new LinkedHashSet<>();
            member.get("topics").forEach(topic -> topicIds.add(Uuid.fromString(topic.asText())));
            List<ShareGroupTargetAssignmentMemberValue.TopicPartition> target = new ArrayList<>();
            member.get("assignment").fields().forEachRemaining(topic -> {
                List<Integer> partitions = new ArrayList<>();
                topic.getValue().forEach(partition -> partitions.add(partition.asInt()));
                target.add(new ShareGroupTargetAssignmentMemberValue.TopicPartition()
                    .setTopicId(Uuid.fromString(topic.getKey())).setPartitions(partitions));
            });
            members.put(entry.getKey(), new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(),
                Optional.empty(),
                topicIds,
                Assignment.fromRecord(new ShareGroupTargetAssignmentMemberValue().setTopicPartitions(target))));
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
        Map<String, MemberAssignment> assigned = new SimpleAssignor().assign(
            new GroupSpecImpl(Collections.unmodifiableMap(members), type, Map.of(), Optional.of(assignable)), describer).members();
        Map<String, List<List<Object>>> result = new TreeMap<>();
        assigned.forEach((memberId, assignment) -> {
            List<List<Object>> topics = new ArrayList<>();
            assignment.partitions().forEach(
                (topicId, partitions) -> topics.add(List.of(topicId.toString(), new ArrayList<>(partitions))));
            result.put(memberId, topics);
        });
        return result;
    }
}
