// Command load puts load on a Kafka broker with franz-go and prints one JSON object with what it measured.
//
//	load produce -brokers B -topic T -records N -size BYTES [-acks all|1] [-linger 5ms] [-ca FILE]
//	load consume -brokers B -topic T -records N [-ca FILE]
//	load echo    -brokers B -topic T -records N -size BYTES
//
// "produce" is idempotent unless -acks 1, without compression; its p99 is that of its requests, from the first byte
// written to the last byte of the answer, without the time that records wait in the producer. "echo" sends one record
// at a time and measures the time until a consumer of the same process holds it. With -ca the brokers are reached with
// TLS, and trusted for the certificates in the file.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A run that stalls is a finding, not a reason to hang the bench.
const deadline = 10 * time.Minute

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("usage: load produce|consume|echo [flags]")
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	brokers := flags.String("brokers", "127.0.0.1:9092", "bootstrap addresses, comma separated")
	topic := flags.String("topic", "bench", "an existing topic")
	records := flags.Int64("records", 1_000_000, "how many records")
	size := flags.Int("size", 100, "bytes of a record's value")
	acks := flags.String("acks", "all", "all (idempotent) or 1")
	linger := flags.Duration("linger", 5*time.Millisecond, "how long a batch waits for more records")
	authority := flags.String("ca", "", "a PEM file; with it the brokers are reached with TLS")
	if err := flags.Parse(os.Args[2:]); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	seeds, err := reached(strings.Split(*brokers, ","), *authority)
	if err != nil {
		log.Fatal(err)
	}

	var result map[string]any
	switch os.Args[1] {
	case "produce":
		result, err = produce(ctx, seeds, *topic, *records, *size, *acks, *linger)
	case "consume":
		result, err = consume(ctx, seeds, *topic, *records)
	case "echo":
		result, err = echo(ctx, seeds, *topic, *records, *size)
	default:
		err = fmt.Errorf("unknown command %q", os.Args[1])
	}
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		log.Fatal(err)
	}
}

// reached says how the brokers are reached: with TLS where a file with an authority is named.
func reached(brokers []string, authority string) ([]kgo.Opt, error) {
	opts := []kgo.Opt{kgo.SeedBrokers(brokers...)}
	if authority == "" {
		return opts, nil
	}
	pem, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", authority)
	}
	return append(opts, kgo.DialTLSConfig(&tls.Config{RootCAs: trusted})), nil
}

func producerOptions(seeds []kgo.Opt, topic, acks string, linger time.Duration) []kgo.Opt {
	opts := append(slices.Clone(seeds),
		kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(linger),
		kgo.MaxBufferedRecords(200_000),
		kgo.ProducerBatchMaxBytes(1_000_000),
	)
	if acks == "1" {
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	}
	return opts
}

// produceKey is the number of the API Produce.
const produceKey = 0

// roundTrips has the times of all Produce requests; it is a hook of the client, which calls it from several goroutines.
type roundTrips struct {
	mu   sync.Mutex
	took []time.Duration
}

func (r *roundTrips) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e2e kgo.BrokerE2E) {
	if key == produceKey && e2e.Err() == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.took = append(r.took, e2e.DurationE2E())
	}
}

// quantile sorts durations and returns the one below which a share of q of them lies, in nanoseconds.
func quantile(took []time.Duration, q float64) float64 {
	slices.Sort(took)
	return float64(took[int(q*float64(len(took)-1))].Nanoseconds())
}

func produce(
	ctx context.Context, seeds []kgo.Opt, topic string, records int64, size int, acks string, linger time.Duration,
) (map[string]any, error) {
	requests := &roundTrips{}
	client, err := kgo.NewClient(append(producerOptions(seeds, topic, acks, linger), kgo.WithHooks(requests))...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return nil, err
	}
	value := make([]byte, size)
	rand.New(rand.NewSource(1)).Read(value)

	var failed atomic.Int64
	var firstError atomic.Value
	promise := func(_ *kgo.Record, err error) {
		if err != nil {
			failed.Add(1)
			firstError.CompareAndSwap(nil, err.Error())
		}
	}
	start := time.Now()
	for range records {
		client.Produce(ctx, &kgo.Record{Value: value}, promise)
	}
	if err := client.Flush(ctx); err != nil {
		return nil, err
	}
	seconds := time.Since(start).Seconds()
	if n := failed.Load(); n > 0 {
		return nil, fmt.Errorf("%d of %d records failed: %v", n, records, firstError.Load())
	}
	return map[string]any{
		"records": records, "bytes": records * int64(size), "seconds": seconds,
		"p99_ms": quantile(requests.took, 0.99) / 1e6,
	}, nil
}

func consume(ctx context.Context, seeds []kgo.Opt, topic string, records int64) (map[string]any, error) {
	client, err := kgo.NewClient(append(slices.Clone(seeds),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxBytes(64<<20),
		kgo.FetchMaxPartitionBytes(16<<20),
	)...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return nil, err
	}
	var got, size int64
	start := time.Now()
	for got < records {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return nil, err
		}
		if errs := fetches.Errors(); len(errs) > 0 {
			return nil, fmt.Errorf("fetch from %s-%d: %w", errs[0].Topic, errs[0].Partition, errs[0].Err)
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			got += int64(len(p.Records))
			for _, r := range p.Records {
				size += int64(len(r.Value))
			}
		})
	}
	return map[string]any{"records": got, "bytes": size, "seconds": time.Since(start).Seconds()}, nil
}

func echo(ctx context.Context, seeds []kgo.Opt, topic string, records int64, size int) (map[string]any, error) {
	producer, err := kgo.NewClient(producerOptions(seeds, topic, "all", 0)...)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	consumer, err := kgo.NewClient(append(slices.Clone(seeds),
		kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()),
	)...)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()

	arrived := make(chan time.Time, 1024)
	go func() {
		for ctx.Err() == nil {
			consumer.PollFetches(ctx).EachRecord(func(*kgo.Record) { arrived <- time.Now() })
		}
	}()
	value := make([]byte, size)
	// The consumer starts at the end: records sent before it found the end are not its business.
	for joined := false; !joined; {
		if err := producer.ProduceSync(ctx, &kgo.Record{Value: value}).FirstErr(); err != nil {
			return nil, err
		}
		select {
		case <-arrived:
			joined = true
		case <-time.After(200 * time.Millisecond):
		}
	}
	for quiet := false; !quiet; {
		select {
		case <-arrived:
		case <-time.After(200 * time.Millisecond):
			quiet = true
		}
	}
	warmUp := records / 10
	took := make([]time.Duration, 0, records)
	acknowledged := make(chan error, 1)
	for i := range records + warmUp {
		sent := time.Now()
		producer.Produce(ctx, &kgo.Record{Value: value}, func(_ *kgo.Record, err error) { acknowledged <- err })
		if err := <-acknowledged; err != nil {
			return nil, fmt.Errorf("record %d was not taken: %w", i, err)
		}
		select {
		case at := <-arrived:
			if i >= warmUp {
				took = append(took, at.Sub(sent))
			}
		case <-time.After(10 * time.Second):
			return nil, fmt.Errorf("record %d was acknowledged but did not arrive within 10 s", i)
		}
	}
	at := func(q float64) float64 { return quantile(took, q) / 1e3 }
	return map[string]any{"records": len(took), "p50_us": at(0.5), "p99_us": at(0.99), "max_us": at(1)}, nil
}
