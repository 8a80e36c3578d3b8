// franz-go: pure Go; kgo is its client, kadm its admin.
package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"interop/protocol"
)

const timeout = 30 * time.Second

var (
	codecs = map[string]kgo.CompressionCodec{
		"none":   kgo.NoCompression(),
		"gzip":   kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(),
		"lz4":    kgo.Lz4Compression(),
		"zstd":   kgo.ZstdCompression(),
	}
	acks = map[string]kgo.Acks{"all": kgo.AllISRAcks(), "1": kgo.LeaderAck(), "0": kgo.NoAck()}

	balancers = map[string]kgo.GroupBalancer{
		"range":              kgo.RangeBalancer(),
		"roundrobin":         kgo.RoundRobinBalancer(),
		"sticky":             kgo.StickyBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}
	// The broker's assignors, by which the client knows that it is to use them.
	serverSide = map[string]kgo.GroupBalancer{"range": kgo.RangeBalancer(), "uniform": kgo.StickyBalancer()}

	statuses = map[string]kgo.AckStatus{
		"accept": kgo.AckAccept, "release": kgo.AckRelease, "reject": kgo.AckReject, "renew": kgo.AckRenew,
	}

	admin        *kadm.Client
	members      protocol.Opened[*member]
	shareMembers protocol.Opened[*shareMember]
	producers    protocol.Opened[*kgo.Client]
)

func connect(options ...kgo.Opt) (*kgo.Client, error) {
	all := append([]kgo.Opt{kgo.SeedBrokers(protocol.Bootstrap()...), kgo.RetryTimeout(timeout)}, secured()...)
	return kgo.NewClient(append(all, options...)...)
}

func secured() []kgo.Opt {
	login := protocol.Secured()
	if login == nil {
		return nil
	}
	options := []kgo.Opt{kgo.DialTLSConfig(login.TLS())}
	scrams := scram.Auth{User: login.User, Pass: login.Password, IsToken: login.IsToken}
	mechanisms := map[string]sasl.Mechanism{
		"PLAIN":         plain.Auth{User: login.User, Pass: login.Password}.AsMechanism(),
		"SCRAM-SHA-256": scrams.AsSha256Mechanism(),
		"SCRAM-SHA-512": scrams.AsSha512Mechanism(),
		"OAUTHBEARER":   oauth.Auth{Token: login.BearerToken}.AsMechanism(),
	}
	if mechanism, ok := mechanisms[login.Mechanism]; ok {
		options = append(options, kgo.SASL(mechanism))
	}
	return options
}

func code(err error) (int, bool) {
	var known *kerr.Error
	if errors.As(err, &known) {
		return int(known.Code), true
	}
	// Its own: it has lost the broker.
	return -1, true
}

func within() context.Context {
	// Ends with the question, which no one asks for longer than that.
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	time.AfterFunc(timeout, cancel)
	return ctx
}

func fromRecord(record *kgo.Record) protocol.Record {
	headers := make([]protocol.Header, 0, len(record.Headers))
	for _, header := range record.Headers {
		headers = append(headers, protocol.Header{Name: header.Key, Value: header.Value})
	}
	timestamp := record.Timestamp.UnixMilli()
	return protocol.Record{
		Value: record.Value, Key: record.Key, Headers: headers, TimestampMs: &timestamp,
		Partition: int(record.Partition), Offset: record.Offset, DeliveryCount: record.DeliveryCount(),
	}
}

func toRecord(topic string, record protocol.Record) *kgo.Record {
	sent := &kgo.Record{Topic: topic, Value: record.Value, Key: record.Key, Partition: int32(record.Partition)}
	for _, header := range record.Headers {
		sent.Headers = append(sent.Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
	}
	if record.TimestampMs != nil {
		sent.Timestamp = time.UnixMilli(*record.TimestampMs)
	}
	return sent
}

func produce(q protocol.Produce) (any, error) {
	options := []kgo.Opt{
		kgo.RequiredAcks(acks[q.Acks]),
		kgo.ProducerBatchCompression(codecs[q.Codec]),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(4 << 20),
		kgo.AllowAutoTopicCreation(),
	}
	if !q.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := connect(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	sent := make([]*kgo.Record, len(q.Records))
	for n, record := range q.Records {
		sent[n] = toRecord(q.Topic, record)
	}
	if err := client.ProduceSync(within(), sent...).FirstErr(); err != nil {
		return nil, err
	}
	offsets := make([]int64, len(sent))
	for n, record := range sent {
		offsets[n] = record.Offset
	}
	return offsets, nil
}

func listed(offsets kadm.ListedOffsets, err error, topic string, partition int) (kadm.ListedOffset, error) {
	if err != nil {
		return kadm.ListedOffset{}, err
	}
	found, ok := offsets.Lookup(topic, int32(partition))
	if !ok {
		return found, protocol.Refused{Code: 3, Text: fmt.Sprintf("%s has no partition %d", topic, partition)}
	}
	return found, found.Err
}

func beginning(topic string, partition int) (int64, error) {
	offsets, err := admin.ListStartOffsets(within(), topic)
	found, err := listed(offsets, err, topic, partition)
	return found.Offset, err
}

func stableEnd(topic string, partition int) (int64, error) {
	offsets, err := admin.ListCommittedOffsets(within(), topic)
	found, err := listed(offsets, err, topic, partition)
	return found.Offset, err
}

func end(topic string, partition int) (int64, error) {
	offsets, err := admin.ListEndOffsets(within(), topic)
	found, err := listed(offsets, err, topic, partition)
	return found.Offset, err
}

func read(q protocol.Read) (any, error) {
	isolation, endOf := kgo.ReadUncommitted(), end
	if q.Committed {
		isolation, endOf = kgo.ReadCommitted(), stableEnd
	}
	ends := map[int32]int64{}
	from := map[int32]kgo.Offset{}
	for _, partition := range q.Partitions {
		first, err := beginning(q.Topic, partition)
		if err != nil {
			return nil, err
		}
		last, err := endOf(q.Topic, partition)
		if err != nil {
			return nil, err
		}
		if q.Start != nil {
			first = *q.Start
		}
		if first < last {
			ends[int32(partition)], from[int32(partition)] = last, kgo.NewOffset().At(first)
		}
	}
	found := []protocol.Record{}
	if len(ends) == 0 {
		return found, nil
	}
	options := []kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{q.Topic: from}),
		kgo.FetchIsolationLevel(isolation),
		// They tell where it is, when nothing else is left to read.
		kgo.KeepControlRecords(),
	}
	if q.FetchBytes != nil {
		options = append(options, kgo.FetchMaxBytes(int32(*q.FetchBytes)), kgo.FetchMaxPartitionBytes(int32(*q.FetchBytes)))
	}
	client, err := connect(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx := within()
	for len(ends) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(record *kgo.Record) {
			if !record.Attrs.IsControl() {
				found = append(found, fromRecord(record))
			}
			if record.Offset+1 >= ends[record.Partition] {
				delete(ends, record.Partition)
			}
		})
	}
	return found, nil
}

func readOutOfRange(q protocol.Place) (any, error) {
	reset := map[string]kgo.Offset{
		"earliest": kgo.NewOffset().AtStart(), "latest": kgo.NewOffset().AtEnd(), "none": kgo.NoResetOffset(),
	}[q.Reset]
	client, err := connect(
		kgo.ConsumeResetOffset(reset),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{q.Topic: {0: kgo.NewOffset().At(q.Offset)}}),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	last, err := end(q.Topic, 0)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); {
		// It does not say where it is: what it reads next does, and at the end there is nothing to read.
		if q.Reset == "latest" {
			if _, err := produce(protocol.Produce{Topic: q.Topic, Records: []protocol.Record{{}}, Codec: "none", Acks: "all"}); err != nil {
				return nil, err
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		fetches := client.PollFetches(ctx)
		cancel()
		for _, failed := range fetches.Errors() {
			if errors.Is(failed.Err, kerr.OffsetOutOfRange) {
				return nil, nil
			}
		}
		if records := fetches.Records(); len(records) > 0 {
			return min(records[0].Offset, last), nil
		}
	}
	return nil, errors.New("the consumer neither moved nor failed")
}

type member struct {
	client   *kgo.Client
	mutex    sync.Mutex
	assigned map[int32]bool
}

func openMember(q protocol.OpenMember) (any, error) {
	return open(
		q,
		kgo.Balancers(balancers[q.Strategy]),
		kgo.SessionTimeout(time.Duration(q.SessionTimeoutMs)*time.Millisecond),
		kgo.HeartbeatInterval(500*time.Millisecond),
	)
}

func openConsumerMember(q protocol.OpenMember) (any, error) {
	assignor := kgo.StickyBalancer()
	if q.Assignor != nil {
		assignor = serverSide[*q.Assignor]
	}
	more := []kgo.Opt{kgo.ServerSideBalancer(), kgo.Balancers(assignor)}
	if strings.HasPrefix(q.Topic, "^") {
		more = append(more, kgo.ConsumeRegex())
	}
	return open(q, more...)
}

func open(q protocol.OpenMember, more ...kgo.Opt) (any, error) {
	opened := &member{assigned: map[int32]bool{}}
	lost := func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
		for _, partitions := range topics {
			opened.has(partitions, false)
		}
	}
	options := []kgo.Opt{
		kgo.ConsumerGroup(q.Group),
		kgo.ConsumeTopics(q.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.FetchMaxWait(500 * time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
			for _, partitions := range topics {
				opened.has(partitions, true)
			}
		}),
		kgo.OnPartitionsRevoked(lost),
		kgo.OnPartitionsLost(lost),
	}
	if q.InstanceID != nil {
		options = append(options, kgo.InstanceID(*q.InstanceID))
	}
	client, err := connect(append(options, more...)...)
	if err != nil {
		return nil, err
	}
	opened.client = client
	members.Put(q.Member, opened)
	return nil, nil
}

func (m *member) has(partitions []int32, has bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, partition := range partitions {
		if has {
			m.assigned[partition] = true
		} else {
			delete(m.assigned, partition)
		}
	}
}

func (m *member) poll(timeoutMs int) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(timeoutMs)*time.Millisecond)
	defer cancel()
	fetches := m.client.PollFetches(ctx)
	found := []protocol.Record{}
	for _, failed := range fetches.Errors() {
		// It tells of a join that was in vain, and joins again.
		var rejoins *kgo.ErrGroupSession
		if !errors.Is(failed.Err, context.DeadlineExceeded) && !errors.As(failed.Err, &rejoins) {
			return nil, failed.Err
		}
	}
	fetches.EachRecord(func(record *kgo.Record) { found = append(found, fromRecord(record)) })
	return found, nil
}

func (m *member) assignment() []int32 {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	partitions := []int32{}
	for partition := range m.assigned {
		partitions = append(partitions, partition)
	}
	return partitions
}

// shareMember is a consumer in a share group, what it polled last, and the first error that came back for its
// acknowledgements since the last commit: the client sends them by itself too.
type shareMember struct {
	client  *kgo.Client
	polled  map[place]*kgo.Record
	mutex   sync.Mutex
	refused error
}

type place struct {
	partition int32
	offset    int64
}

func openShareMember(q protocol.OpenMember) (any, error) {
	opened := &shareMember{}
	client, err := connect(
		kgo.ShareGroup(q.Group),
		kgo.ConsumeTopics(q.Topic),
		kgo.ShareMaxRecords(q.MaxRecords),
		// It fetches when it is polled: what it fetched before that, others would wait for.
		kgo.MaxConcurrentFetches(0),
		kgo.FetchMaxWait(500*time.Millisecond),
		kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) {
			opened.mutex.Lock()
			defer opened.mutex.Unlock()
			if opened.refused == nil {
				opened.refused = results.Error()
			}
		}),
	)
	if err != nil {
		return nil, err
	}
	opened.client = client
	shareMembers.Put(q.Member, opened)
	return nil, nil
}

func (m *shareMember) poll(timeoutMs int) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(timeoutMs)*time.Millisecond)
	defer cancel()
	fetches := m.client.PollFetches(ctx)
	for _, failed := range fetches.Errors() {
		if !errors.Is(failed.Err, context.DeadlineExceeded) {
			return nil, failed.Err
		}
	}
	found := []protocol.Record{}
	m.polled = map[place]*kgo.Record{}
	fetches.EachRecord(func(record *kgo.Record) {
		m.polled[place{record.Partition, record.Offset}] = record
		found = append(found, fromRecord(record))
	})
	return found, nil
}

func (m *shareMember) commit() error {
	if err := m.client.FlushAcks(within()); err != nil {
		return err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	refused := m.refused
	m.refused = nil
	return refused
}

func openTransactions(q protocol.OpenTransactions) (any, error) {
	client, err := connect(
		kgo.TransactionalID(q.TransactionalID),
		kgo.TransactionTimeout(time.Duration(q.TimeoutMs)*time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		return nil, err
	}
	// It would fence others with its first record only.
	if _, _, err := client.ProducerID(within()); err != nil {
		client.Close()
		return nil, err
	}
	producers.Put(q.Producer, client)
	return nil, nil
}

func sendInTransaction(q protocol.Transactions) (any, error) {
	sent := make([]*kgo.Record, len(q.Records))
	for n, record := range q.Records {
		sent[n] = toRecord(q.Topic, record)
	}
	return nil, producers.Get(q.Producer).ProduceSync(within(), sent...).FirstErr()
}

func ended(commit kgo.TransactionEndTry) protocol.Op {
	return protocol.Asked(func(q protocol.Transactions) (any, error) {
		return nil, producers.Get(q.Producer).EndTransaction(within(), commit)
	})
}

func copied(q protocol.Copy) (any, error) {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(protocol.Bootstrap()...),
		kgo.TransactionalID(q.TransactionalID),
		kgo.ConsumerGroup(q.Group),
		kgo.ConsumeTopics(q.Source),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	ctx := within()
	if err := session.Begin(); err != nil {
		return nil, err
	}
	for read := 0; read < q.Count; {
		fetches := session.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		for _, record := range fetches.Records() {
			if err := session.ProduceSync(ctx, &kgo.Record{Topic: q.Target, Value: record.Value}).FirstErr(); err != nil {
				return nil, err
			}
			read++
		}
	}
	committed, err := session.End(ctx, kgo.TransactionEndTry(q.Commit))
	if err == nil && committed != q.Commit {
		err = errors.New("the transaction ended otherwise")
	}
	return nil, err
}

func committed(group, topic string, partition int) (*kadm.OffsetResponse, error) {
	offsets, err := admin.FetchOffsets(within(), group)
	if err != nil {
		return nil, err
	}
	found, ok := offsets.Lookup(topic, int32(partition))
	if !ok || found.At < 0 {
		return nil, nil
	}
	return &found, found.Err
}

func commitMetadata(q protocol.Place) (any, error) {
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: q.Topic, At: q.Offset, LeaderEpoch: -1, Metadata: q.Metadata})
	if err := admin.CommitAllOffsets(within(), q.Group, offsets); err != nil {
		return nil, err
	}
	found, err := committed(q.Group, q.Topic, 0)
	if err != nil {
		return nil, err
	}
	return found.Metadata, nil
}

func cluster(protocol.Nothing) (any, error) {
	seen, err := admin.BrokerMetadata(within())
	if err != nil {
		return nil, err
	}
	brokers := [][2]any{}
	for _, broker := range seen.Brokers {
		brokers = append(brokers, [2]any{broker.NodeID, broker.Host + ":" + strconv.Itoa(int(broker.Port))})
	}
	return protocol.Cluster{ClusterID: seen.Cluster, ControllerID: int(seen.Controller), Brokers: brokers}, nil
}

func createTopic(q protocol.NewTopic) (any, error) {
	configs := map[string]*string{}
	for key, value := range q.Configs {
		configs[key] = kadm.StringPtr(value)
	}
	_, err := admin.CreateTopic(within(), int32(q.Partitions), int16(q.ReplicationFactor), configs, q.Name)
	return nil, err
}

func config(q protocol.Name) (any, error) {
	described, err := admin.DescribeTopicConfigs(within(), q.Topic)
	if err != nil {
		return nil, err
	}
	found, err := described.On(q.Topic, nil)
	if err == nil {
		err = found.Err
	}
	entries := map[string][2]any{}
	for _, entry := range found.Configs {
		entries[entry.Key] = [2]any{entry.MaybeValue(), entry.Source == kmsg.ConfigSourceDefaultConfig}
	}
	return entries, err
}

func setConfig(q protocol.Change) (any, error) {
	change := kadm.AlterConfig{Op: kadm.SetConfig, Name: q.Key, Value: &q.Value}
	answers, err := admin.AlterTopicConfigs(within(), []kadm.AlterConfig{change}, q.Topic)
	if err != nil {
		return nil, err
	}
	answer, err := answers.On(q.Topic, nil)
	if err == nil {
		err = answer.Err
	}
	return nil, err
}

func setGroupConfig(q protocol.Change) (any, error) {
	client, err := connect()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	change := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	change.Name, change.Op, change.Value = q.Key, kmsg.IncrementalAlterConfigOpSet, &q.Value
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, q.Group
	resource.Configs = append(resource.Configs, change)
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	request.Resources = append(request.Resources, resource)
	answer, err := request.RequestWith(within(), client)
	if err != nil {
		return nil, err
	}
	return nil, kerr.ErrorForCode(answer.Resources[0].ErrorCode)
}

func deleteRecords(q protocol.Place) (any, error) {
	offsets := kadm.Offsets{}
	offsets.AddOffset(q.Topic, int32(q.Partition), q.Before, -1)
	answers, err := admin.DeleteRecords(within(), offsets)
	if err == nil {
		err = answers.Error()
	}
	return nil, err
}

func main() {
	// Its admin answers from metadata of up to this age.
	client, err := connect(kgo.MetadataMinAge(10 * time.Millisecond))
	if err != nil {
		panic(err)
	}
	admin = kadm.NewClient(client)
	protocol.Serve(protocol.Hello{
		Version:    protocol.VersionOf("github.com/twmb/franz-go"),
		Features:   []string{"ordered_headers", "null_headers", "append_time", "timestamps", "idempotent", "range", "commit", "isolation", "stable_end", "renew"},
		Strategies: []string{"roundrobin", "sticky", "cooperative-sticky"},
	}, code, map[string]protocol.Op{
		"produce":           protocol.Asked(produce),
		"read":              protocol.Asked(read),
		"read_out_of_range": protocol.Asked(readOutOfRange),
		"beginning":         protocol.Asked(func(q protocol.Place) (any, error) { return beginning(q.Topic, q.Partition) }),
		"end":               protocol.Asked(func(q protocol.Place) (any, error) { return end(q.Topic, q.Partition) }),
		"offset_at": protocol.Asked(func(q protocol.Place) (any, error) {
			offsets, err := admin.ListOffsetsAfterMilli(within(), q.TimestampMs, q.Topic)
			found, err := listed(offsets, err, q.Topic, q.Partition)
			// It gives the end, without a timestamp, where the broker says that there is none.
			if err != nil || found.Timestamp < 0 {
				return nil, err
			}
			return found.Offset, nil
		}),
		"member.open":          protocol.Asked(openMember),
		"consumer_member.open": protocol.Asked(openConsumerMember),
		"member.poll":          protocol.Asked(func(q protocol.Member) (any, error) { return members.Get(q.Member).poll(q.TimeoutMs) }),
		"member.assignment": protocol.Asked(func(q protocol.Member) (any, error) {
			return members.Get(q.Member).assignment(), nil
		}),
		"member.commit": protocol.Asked(func(q protocol.Member) (any, error) {
			return nil, members.Get(q.Member).client.CommitUncommittedOffsets(within())
		}),
		"member.close": protocol.Asked(func(q protocol.Member) (any, error) {
			members.Take(q.Member).client.Close()
			return nil, nil
		}),
		"share_member.open": protocol.Asked(openShareMember),
		"share_member.poll": protocol.Asked(func(q protocol.Member) (any, error) {
			return shareMembers.Get(q.Member).poll(q.TimeoutMs)
		}),
		"share_member.acknowledge": protocol.Asked(func(q protocol.Acknowledge) (any, error) {
			record := shareMembers.Get(q.Member).polled[place{int32(q.Partition), q.Offset}]
			record.Ack(statuses[q.How])
			return nil, nil
		}),
		"share_member.commit": protocol.Asked(func(q protocol.Member) (any, error) {
			return nil, shareMembers.Get(q.Member).commit()
		}),
		"share_member.close": protocol.Asked(func(q protocol.Member) (any, error) {
			shareMembers.Take(q.Member).client.Close()
			return nil, nil
		}),
		"transactions.open": protocol.Asked(openTransactions),
		"transactions.begin": protocol.Asked(func(q protocol.Transactions) (any, error) {
			return nil, producers.Get(q.Producer).BeginTransaction()
		}),
		"transactions.send":   protocol.Asked(sendInTransaction),
		"transactions.commit": ended(kgo.TryCommit),
		"transactions.abort":  ended(kgo.TryAbort),
		"transactions.close": protocol.Asked(func(q protocol.Transactions) (any, error) {
			producers.Take(q.Producer).Close()
			return nil, nil
		}),
		"copy": protocol.Asked(copied),
		"committed": protocol.Asked(func(q protocol.Place) (any, error) {
			found, err := committed(q.Group, q.Topic, q.Partition)
			if found == nil {
				return nil, err
			}
			return found.At, err
		}),
		"commit_metadata": protocol.Asked(commitMetadata),
		"cluster":         protocol.Asked(cluster),
		"create_topic":    protocol.Asked(createTopic),
		"topics": protocol.Asked(func(protocol.Nothing) (any, error) {
			found, err := admin.ListTopicsWithInternal(within())
			return found.Names(), err
		}),
		"partitions": protocol.Asked(func(q protocol.Name) (any, error) {
			found, err := admin.ListTopics(within(), q.Topic)
			if err == nil {
				err = found[q.Topic].Err
			}
			return len(found[q.Topic].Partitions), err
		}),
		"delete_topic": protocol.Asked(func(q protocol.Name) (any, error) {
			_, err := admin.DeleteTopic(within(), q.Name)
			return nil, err
		}),
		"add_partitions": protocol.Asked(func(q protocol.Change) (any, error) {
			answers, err := admin.UpdatePartitions(within(), q.Total, q.Topic)
			if err == nil {
				err = answers.Error()
			}
			return nil, err
		}),
		"config":           protocol.Asked(config),
		"set_config":       protocol.Asked(setConfig),
		"set_group_config": protocol.Asked(setGroupConfig),
		"delete_records":   protocol.Asked(deleteRecords),
		"groups": protocol.Asked(func(protocol.Nothing) (any, error) {
			found, err := admin.ListGroups(within())
			return found.Groups(), err
		}),
		"group": protocol.Asked(func(q protocol.Name) (any, error) {
			described, err := admin.DescribeGroups(within(), q.Group)
			found := described[q.Group]
			if err == nil {
				err = found.Err
			}
			return protocol.Group{State: found.State, Members: len(found.Members)}, err
		}),
		"delete_group": protocol.Asked(func(q protocol.Name) (any, error) {
			answer, err := admin.DeleteGroup(within(), q.Group)
			if err == nil {
				err = answer.Err
			}
			return nil, err
		}),
		"delete_offset": protocol.Asked(func(q protocol.Place) (any, error) {
			topics := kadm.TopicsSet{}
			topics.Add(q.Topic, int32(q.Partition))
			answers, err := admin.DeleteOffsets(within(), q.Group, topics)
			if err == nil {
				err = answers.Error()
			}
			return nil, err
		}),
	})
}
