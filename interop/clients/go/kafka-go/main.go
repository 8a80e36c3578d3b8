// kafka-go: pure Go, from segmentio.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"interop/protocol"
)

const timeout = 30 * time.Second

var (
	client = &kafka.Client{
		Addr:    kafka.TCP(protocol.Bootstrap()...),
		Timeout: timeout,
		// Its admin answers from metadata of up to this age.
		Transport: transport(),
	}
	brokers = protocol.Bootstrap()

	codecs = map[string]kafka.Compression{
		"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
	}
	acks = map[string]kafka.RequiredAcks{"all": kafka.RequireAll, "1": kafka.RequireOne, "0": kafka.RequireNone}

	balancers = map[string]kafka.GroupBalancer{
		"range": kafka.RangeGroupBalancer{}, "roundrobin": kafka.RoundRobinGroupBalancer{},
	}
	members protocol.Opened[*member]
)

func transport() *kafka.Transport {
	made := &kafka.Transport{MetadataTTL: 10 * time.Millisecond}
	if login := protocol.Secured(); login != nil {
		made.TLS, made.SASL = login.TLS(), mechanism(login)
	}
	return made
}

// dialer is what readers and groups connect with; nil where the listener is not secured.
func dialer() *kafka.Dialer {
	login := protocol.Secured()
	if login == nil {
		return nil
	}
	return &kafka.Dialer{Timeout: timeout, DualStack: true, TLS: login.TLS(), SASLMechanism: mechanism(login)}
}

func mechanism(login *protocol.Login) sasl.Mechanism {
	algorithms := map[string]scram.Algorithm{"SCRAM-SHA-256": scram.SHA256, "SCRAM-SHA-512": scram.SHA512}
	if algorithm, ok := algorithms[login.Mechanism]; ok {
		made, err := scram.Mechanism(algorithm, login.User, login.Password)
		if err != nil {
			panic(err)
		}
		return made
	}
	if login.Mechanism == "PLAIN" {
		return plain.Mechanism{Username: login.User, Password: login.Password}
	}
	return nil
}

func code(err error) (int, bool) {
	var failed kafka.WriteErrors
	if errors.As(err, &failed) {
		for _, one := range failed {
			if one != nil {
				return code(one)
			}
		}
	}
	var known kafka.Error
	if errors.As(err, &known) {
		return int(known), true
	}
	var network net.Error
	// Its own: it has lost the broker.
	return -1, errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func within() context.Context {
	// Ends with the question, which no one asks for longer than that.
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	time.AfterFunc(timeout, cancel)
	return ctx
}

func fromMessage(message kafka.Message) protocol.Record {
	headers := make([]protocol.Header, 0, len(message.Headers))
	for _, header := range message.Headers {
		headers = append(headers, protocol.Header{Name: header.Key, Value: header.Value})
	}
	timestamp := message.Time.UnixMilli()
	return protocol.Record{
		Value: message.Value, Key: message.Key, Headers: headers, TimestampMs: &timestamp,
		Partition: message.Partition, Offset: message.Offset,
	}
}

// A writer chooses partitions by a balancer and tells offsets to a callback: this goes along with each message.
type wanted struct{ number, partition int }

func produce(q protocol.Produce) (any, error) {
	offsets := make([]int64, len(q.Records))
	messages := make([]kafka.Message, len(q.Records))
	for n, record := range q.Records {
		offsets[n] = -1
		messages[n] = kafka.Message{Key: record.Key, Value: record.Value, WriterData: wanted{n, record.Partition}}
		for _, header := range record.Headers {
			messages[n].Headers = append(messages[n].Headers, kafka.Header{Key: header.Name, Value: header.Value})
		}
		if record.TimestampMs != nil {
			messages[n].Time = time.UnixMilli(*record.TimestampMs)
		}
	}
	writer := &kafka.Writer{
		Addr:  kafka.TCP(protocol.Bootstrap()...),
		Topic: q.Topic,
		Balancer: kafka.BalancerFunc(func(message kafka.Message, _ ...int) int {
			return message.WriterData.(wanted).partition
		}),
		RequiredAcks:           acks[q.Acks],
		Compression:            codecs[q.Codec],
		BatchTimeout:           5 * time.Millisecond,
		BatchSize:              len(messages),
		BatchBytes:             4 << 20,
		AllowAutoTopicCreation: true,
		Transport:              client.Transport,
		Completion: func(written []kafka.Message, _ error) {
			for _, message := range written {
				offsets[message.WriterData.(wanted).number] = message.Offset
			}
		},
	}
	defer writer.Close()
	err := writer.WriteMessages(within(), messages...)
	// It does not wait for a topic that it has just caused to be created: that is left to its caller.
	for tries := 0; errors.Is(err, kafka.UnknownTopicOrPartition) && tries < 20; tries++ {
		time.Sleep(100 * time.Millisecond)
		err = writer.WriteMessages(within(), messages...)
	}
	return offsets, err
}

func list(topic string, partition int, asked ...kafka.OffsetRequest) (kafka.PartitionOffsets, error) {
	answer, err := client.ListOffsets(within(), &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{topic: asked},
	})
	if err != nil {
		return kafka.PartitionOffsets{}, err
	}
	for _, found := range answer.Topics[topic] {
		if found.Partition == partition {
			return found, found.Error
		}
	}
	return kafka.PartitionOffsets{}, protocol.Refused{Code: 3, Text: fmt.Sprintf("%s has no partition %d", topic, partition)}
}

func watermarks(topic string, partition int) (int64, int64, error) {
	found, err := list(topic, partition, kafka.FirstOffsetOf(partition), kafka.LastOffsetOf(partition))
	for deadline := time.Now().Add(timeout); isStale(err) && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
		found, err = list(topic, partition, kafka.FirstOffsetOf(partition), kafka.LastOffsetOf(partition))
	}
	return found.FirstOffset, found.LastOffset, err
}

// Whether the leaders that its client knows are those of some seconds ago: it asks for them in its own time, and
// not when it, or a broker, says this.
func isStale(err error) bool {
	return errors.Is(err, kafka.NotLeaderForPartition) || errors.Is(err, kafka.BrokerNotAvailable) ||
		errors.Is(err, kafka.LeaderNotAvailable)
}

func offsetAt(q protocol.Place) (any, error) {
	found, err := list(q.Topic, q.Partition, kafka.TimeOffsetOf(q.Partition, time.UnixMilli(q.TimestampMs)))
	if err != nil {
		return nil, err
	}
	for offset := range found.Offsets {
		if offset >= 0 {
			return offset, nil
		}
	}
	return nil, nil
}

func newReader(topic string, partition int) *kafka.Reader {
	return kafka.NewReader(kafka.ReaderConfig{
		Brokers: brokers, Topic: topic, Partition: partition,
		MinBytes: 1, MaxBytes: 10 << 20, MaxWait: 500 * time.Millisecond,
		OffsetOutOfRangeError: true, Dialer: dialer(),
	})
}

func read(q protocol.Read) (any, error) {
	found := []protocol.Record{}
	deadline := time.Now().Add(timeout)
	for _, partition := range q.Partitions {
		first, last, err := watermarks(q.Topic, partition)
		if err != nil {
			return nil, err
		}
		if q.Start != nil {
			first = *q.Start
		}
		if first >= last {
			continue
		}
		for next := first; next < last; {
			records, err := fetch(q.Topic, partition, next, q.FetchBytes)
			if isStale(err) && time.Now().Before(deadline) {
				time.Sleep(100 * time.Millisecond)
				continue
			}
			if err != nil {
				return nil, err
			}
			for _, record := range records {
				// A batch is answered as a whole, with what is in front of the wanted offset.
				if record.Offset >= next {
					found, next = append(found, record), record.Offset+1
				}
			}
		}
	}
	return found, nil
}

// By hand, without a kafka.Reader: that one makes null of what is empty.
func fetch(topic string, partition int, offset int64, limit *int) ([]protocol.Record, error) {
	maxBytes := int64(10 << 20)
	if limit != nil {
		maxBytes = int64(*limit)
	}
	answer, err := client.Fetch(within(), &kafka.FetchRequest{
		Topic: topic, Partition: partition, Offset: offset,
		MinBytes: 1, MaxBytes: maxBytes, MaxWait: 500 * time.Millisecond,
	})
	if err == nil {
		err = answer.Error
	}
	if err != nil {
		return nil, err
	}
	found := []protocol.Record{}
	for {
		record, err := answer.Records.ReadRecord()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		message := kafka.Message{Partition: partition, Offset: record.Offset, Time: record.Time, Headers: record.Headers}
		if message.Key, err = kafka.ReadAll(record.Key); err != nil {
			return nil, err
		}
		if message.Value, err = kafka.ReadAll(record.Value); err != nil {
			return nil, err
		}
		found = append(found, fromMessage(message))
	}
}

func readOutOfRange(q protocol.Place) (any, error) {
	if q.Reset != "none" {
		return nil, errors.New("its reader has no reset")
	}
	reader := newReader(q.Topic, 0)
	defer reader.Close()
	if err := reader.SetOffset(q.Offset); err != nil {
		return nil, err
	}
	message, err := reader.ReadMessage(within())
	if errors.Is(err, kafka.OffsetOutOfRange) {
		return nil, nil
	}
	return message.Offset, err
}

// A member: a kafka.Reader of a group does not tell its partitions, so this is a kafka.ConsumerGroup with a
// kafka.Reader for each partition, as its documentation shows.
type member struct {
	group    *kafka.ConsumerGroup
	topic    string
	inbox    chan kafka.Message
	mutex    sync.Mutex
	assigned []int
	polled   map[int]int64
	current  *kafka.Generation
}

func openMember(q protocol.OpenMember) (any, error) {
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: q.Group, Brokers: brokers, Topics: []string{q.Topic},
		GroupBalancers:    []kafka.GroupBalancer{balancers[q.Strategy]},
		HeartbeatInterval: 500 * time.Millisecond,
		SessionTimeout:    time.Duration(q.SessionTimeoutMs) * time.Millisecond,
		RebalanceTimeout:  10 * time.Second,
		JoinGroupBackoff:  500 * time.Millisecond,
		StartOffset:       kafka.FirstOffset,
		Dialer:            dialer(),
	})
	if err != nil {
		return nil, err
	}
	opened := &member{group: group, topic: q.Topic, inbox: make(chan kafka.Message, 1000), assigned: []int{}}
	members.Put(q.Member, opened)
	go opened.follow()
	return nil, nil
}

func (m *member) follow() {
	for {
		generation, err := m.group.Next(context.Background())
		if errors.Is(err, kafka.ErrGroupClosed) {
			return
		}
		if err != nil {
			continue
		}
		m.mutex.Lock()
		m.assigned, m.polled, m.current = []int{}, map[int]int64{}, generation
		for _, assignment := range generation.Assignments[m.topic] {
			m.assigned = append(m.assigned, assignment.ID)
			generation.Start(func(ctx context.Context) { m.consume(ctx, assignment) })
		}
		m.mutex.Unlock()
		generation.Start(func(ctx context.Context) {
			<-ctx.Done()
			m.mutex.Lock()
			defer m.mutex.Unlock()
			m.assigned = []int{}
		})
	}
}

func (m *member) consume(ctx context.Context, assignment kafka.PartitionAssignment) {
	reader := newReader(m.topic, assignment.ID)
	defer reader.Close()
	if err := reader.SetOffset(assignment.Offset); err != nil {
		return
	}
	for ctx.Err() == nil {
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			continue
		}
		select {
		case m.inbox <- message:
		case <-ctx.Done():
		}
	}
}

func (m *member) poll(timeoutMs int) (any, error) {
	found := []protocol.Record{}
	timer := time.NewTimer(time.Duration(timeoutMs) * time.Millisecond)
	defer timer.Stop()
	take := func(message kafka.Message) {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		m.polled[message.Partition] = message.Offset + 1
		found = append(found, fromMessage(message))
	}
	select {
	case message := <-m.inbox:
		take(message)
	case <-timer.C:
	}
	for {
		select {
		case message := <-m.inbox:
			take(message)
		default:
			return found, nil
		}
	}
}

func (m *member) commit() (any, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return nil, m.current.CommitOffsets(map[string]map[int]int64{m.topic: m.polled})
}

func fetchOffset(group, topic string, partition int) (kafka.OffsetFetchPartition, error) {
	answer, err := client.OffsetFetch(within(), &kafka.OffsetFetchRequest{
		GroupID: group, Topics: map[string][]int{topic: {partition}},
	})
	if err == nil {
		err = answer.Error
	}
	if err != nil {
		return kafka.OffsetFetchPartition{}, err
	}
	found := answer.Topics[topic][0]
	return found, found.Error
}

func commitMetadata(q protocol.Place) (any, error) {
	commit := kafka.OffsetCommit{Offset: q.Offset, Metadata: q.Metadata}
	answer, err := client.OffsetCommit(within(), &kafka.OffsetCommitRequest{
		GroupID: q.Group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{q.Topic: {commit}},
	})
	if err == nil {
		err = answer.Topics[q.Topic][0].Error
	}
	if err != nil {
		return nil, err
	}
	found, err := fetchOffset(q.Group, q.Topic, 0)
	return found.Metadata, err
}

func cluster(protocol.Nothing) (any, error) {
	seen, err := client.Metadata(within(), &kafka.MetadataRequest{})
	if err != nil {
		return nil, err
	}
	found := [][2]any{}
	for _, broker := range seen.Brokers {
		found = append(found, [2]any{broker.ID, broker.Host + ":" + strconv.Itoa(broker.Port)})
	}
	return protocol.Cluster{ClusterID: seen.ClusterID, ControllerID: seen.Controller.ID, Brokers: found}, nil
}

func createTopic(q protocol.NewTopic) (any, error) {
	topic := kafka.TopicConfig{Topic: q.Name, NumPartitions: q.Partitions, ReplicationFactor: q.ReplicationFactor}
	for key, value := range q.Configs {
		topic.ConfigEntries = append(topic.ConfigEntries, kafka.ConfigEntry{ConfigName: key, ConfigValue: value})
	}
	answer, err := client.CreateTopics(within(), &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{topic}})
	if err == nil {
		err = answer.Errors[q.Name]
	}
	return nil, err
}

func topics(protocol.Nothing) (any, error) {
	seen, err := client.Metadata(within(), &kafka.MetadataRequest{})
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, topic := range seen.Topics {
		names = append(names, topic.Name)
	}
	return names, nil
}

func partitions(q protocol.Name) (any, error) {
	seen, err := client.Metadata(within(), &kafka.MetadataRequest{Topics: []string{q.Topic}})
	if err == nil {
		err = seen.Topics[0].Error
	}
	if err != nil {
		return nil, err
	}
	return len(seen.Topics[0].Partitions), nil
}

func config(q protocol.Name) (any, error) {
	answer, err := client.DescribeConfigs(within(), &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{
			{ResourceType: kafka.ResourceTypeTopic, ResourceName: q.Topic},
		},
	})
	if err == nil {
		err = answer.Resources[0].Error
	}
	if err != nil {
		return nil, err
	}
	const defaultConfig = 5
	entries := map[string][2]any{}
	for _, entry := range answer.Resources[0].ConfigEntries {
		entries[entry.ConfigName] = [2]any{entry.ConfigValue, entry.ConfigSource == defaultConfig}
	}
	return entries, nil
}

func setConfig(q protocol.Change) (any, error) {
	answer, err := client.IncrementalAlterConfigs(within(), &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: q.Topic,
			Configs: []kafka.IncrementalAlterConfigsRequestConfig{
				{Name: q.Key, Value: q.Value, ConfigOperation: kafka.ConfigOperationSet},
			},
		}},
	})
	if err == nil {
		err = answer.Resources[0].Error
	}
	return nil, err
}

func groups(protocol.Nothing) (any, error) {
	answer, err := client.ListGroups(within(), &kafka.ListGroupsRequest{})
	if err == nil {
		err = answer.Error
	}
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, group := range answer.Groups {
		names = append(names, group.GroupID)
	}
	return names, nil
}

func describeGroup(q protocol.Name) (any, error) {
	answer, err := client.DescribeGroups(within(), &kafka.DescribeGroupsRequest{GroupIDs: []string{q.Group}})
	if err == nil {
		err = answer.Groups[0].Error
	}
	if err != nil {
		return nil, err
	}
	return protocol.Group{State: answer.Groups[0].GroupState, Members: len(answer.Groups[0].Members)}, nil
}

func deleteOffset(q protocol.Place) (any, error) {
	answer, err := client.OffsetDelete(within(), &kafka.OffsetDeleteRequest{
		GroupID: q.Group, Topics: map[string][]int{q.Topic: {q.Partition}},
	})
	if err == nil {
		err = answer.Error
	}
	if err == nil {
		err = answer.Topics[q.Topic][0].Error
	}
	return nil, err
}

func main() {
	protocol.Serve(protocol.Hello{
		Version: protocol.VersionOf("github.com/segmentio/kafka-go"),
		// Without "range": others cannot read its subscription, which ends before it should.
		Features:   []string{"ordered_headers", "null_headers", "timestamps", "commit"},
		Strategies: []string{"range", "roundrobin"},
	}, code, map[string]protocol.Op{
		"produce":           protocol.Asked(produce),
		"read":              protocol.Asked(read),
		"read_out_of_range": protocol.Asked(readOutOfRange),
		"beginning": protocol.Asked(func(q protocol.Place) (any, error) {
			first, _, err := watermarks(q.Topic, q.Partition)
			return first, err
		}),
		"end": protocol.Asked(func(q protocol.Place) (any, error) {
			_, last, err := watermarks(q.Topic, q.Partition)
			return last, err
		}),
		"offset_at":   protocol.Asked(offsetAt),
		"member.open": protocol.Asked(openMember),
		"member.poll": protocol.Asked(func(q protocol.Member) (any, error) { return members.Get(q.Member).poll(q.TimeoutMs) }),
		"member.assignment": protocol.Asked(func(q protocol.Member) (any, error) {
			opened := members.Get(q.Member)
			opened.mutex.Lock()
			defer opened.mutex.Unlock()
			return opened.assigned, nil
		}),
		"member.commit": protocol.Asked(func(q protocol.Member) (any, error) { return members.Get(q.Member).commit() }),
		"member.close": protocol.Asked(func(q protocol.Member) (any, error) {
			return nil, members.Take(q.Member).group.Close()
		}),
		"committed": protocol.Asked(func(q protocol.Place) (any, error) {
			found, err := fetchOffset(q.Group, q.Topic, q.Partition)
			if err != nil || found.CommittedOffset < 0 {
				return nil, err
			}
			return found.CommittedOffset, nil
		}),
		"commit_metadata": protocol.Asked(commitMetadata),
		"cluster":         protocol.Asked(cluster),
		"create_topic":    protocol.Asked(createTopic),
		"topics":          protocol.Asked(topics),
		"partitions":      protocol.Asked(partitions),
		"delete_topic": protocol.Asked(func(q protocol.Name) (any, error) {
			answer, err := client.DeleteTopics(within(), &kafka.DeleteTopicsRequest{Topics: []string{q.Name}})
			if err == nil {
				err = answer.Errors[q.Name]
			}
			return nil, err
		}),
		"add_partitions": protocol.Asked(func(q protocol.Change) (any, error) {
			answer, err := client.CreatePartitions(within(), &kafka.CreatePartitionsRequest{
				Topics: []kafka.TopicPartitionsConfig{{Name: q.Topic, Count: int32(q.Total)}},
			})
			if err == nil {
				err = answer.Errors[q.Topic]
			}
			return nil, err
		}),
		"config":     protocol.Asked(config),
		"set_config": protocol.Asked(setConfig),
		"groups":     protocol.Asked(groups),
		"group":      protocol.Asked(describeGroup),
		"delete_group": protocol.Asked(func(q protocol.Name) (any, error) {
			answer, err := client.DeleteGroups(within(), &kafka.DeleteGroupsRequest{GroupIDs: []string{q.Group}})
			if err == nil {
				err = answer.Errors[q.Group]
			}
			return nil, err
		}),
		"delete_offset": protocol.Asked(deleteOffset),
	})
}
