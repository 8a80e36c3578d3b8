// Package protocol is the driver's side of the protocol of ../../driven.py: questions in on stdin, answers out
// on stdout, each question answered by a goroutine of its own.
package protocol

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sort"
	"strings"
	"sync"
)

// Bootstrap is the list of addresses that the driver was started with.
func Bootstrap() []string { return strings.Split(os.Args[1], ",") }

// Login says how a secured listener is reached (Login.for_driver in ../../login.py).
type Login struct {
	CA          string `json:"ca"`
	Certificate string `json:"certificate"`
	Mechanism   string `json:"mechanism"`
	User        string `json:"user"`
	Password    string `json:"password"`
	IsToken     bool   `json:"is_token"`
	BearerToken string `json:"bearer_token"`
}

// Secured is the login that the driver was started with, nil where the listener is not secured.
func Secured() *Login {
	if len(os.Args) < 3 {
		return nil
	}
	var login Login
	if err := json.Unmarshal([]byte(os.Args[2]), &login); err != nil {
		panic(err)
	}
	return &login
}

// TLS is the login's part of TLS.
func (l *Login) TLS() *tls.Config {
	trusted := x509.NewCertPool()
	pem, err := os.ReadFile(l.CA)
	if err != nil || !trusted.AppendCertsFromPEM(pem) {
		panic(fmt.Sprintf("no certificate in %s: %v", l.CA, err))
	}
	config := &tls.Config{RootCAs: trusted}
	if l.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(l.Certificate, l.Certificate)
		if err != nil {
			panic(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

// Refused says that the broker answered with an error code, -1 that the client has lost its broker.
type Refused struct {
	Code int
	Text string
}

func (r Refused) Error() string { return fmt.Sprintf("%d %s", r.Code, r.Text) }

// Header is a pair: a JSON array of a name and base64 or null.
type Header struct {
	Name  string
	Value []byte
}

func (h Header) MarshalJSON() ([]byte, error) { return json.Marshal([]any{h.Name, h.Value}) }

func (h *Header) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&h.Name, &h.Value})
}

type Record struct {
	Value       []byte   `json:"value"`
	Key         []byte   `json:"key"`
	Headers     []Header `json:"headers"`
	TimestampMs *int64   `json:"timestamp_ms"`
	Partition   int      `json:"partition"`
	Offset      int64    `json:"offset"`
	// Of a record that was given to a share group.
	DeliveryCount int32 `json:"delivery_count,omitempty"`
}

// What is asked, by op; a field that an op does not have stays zero.
type (
	Produce struct {
		Topic      string   `json:"topic"`
		Records    []Record `json:"records"`
		Codec      string   `json:"codec"`
		Acks       string   `json:"acks"`
		Idempotent bool     `json:"idempotent"`
	}
	Read struct {
		Topic      string `json:"topic"`
		Partitions []int  `json:"partitions"`
		Start      *int64 `json:"start"`
		FetchBytes *int   `json:"fetch_bytes"`
		Committed  bool   `json:"committed"`
	}
	Place struct {
		Topic       string `json:"topic"`
		Partition   int    `json:"partition"`
		Group       string `json:"group"`
		Offset      int64  `json:"offset"`
		Before      int64  `json:"before"`
		TimestampMs int64  `json:"timestamp_ms"`
		Reset       string `json:"reset"`
		Metadata    string `json:"metadata"`
	}
	NewTopic struct {
		Name              string            `json:"name"`
		Partitions        int               `json:"partitions"`
		Configs           map[string]string `json:"configs"`
		ReplicationFactor int               `json:"replication_factor"`
	}
	Change struct {
		Topic string `json:"topic"`
		Group string `json:"group"`
		Total int    `json:"total"`
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	Name struct {
		Name  string `json:"name"`
		Topic string `json:"topic"`
		Group string `json:"group"`
	}
	OpenMember struct {
		Member           int     `json:"member"`
		Group            string  `json:"group"`
		Topic            string  `json:"topic"`
		InstanceID       *string `json:"instance_id"`
		SessionTimeoutMs int     `json:"session_timeout_ms"`
		Strategy         string  `json:"strategy"`
		Assignor         *string `json:"assignor"`
		Explicit         bool    `json:"explicit"`
		MaxRecords       int32   `json:"max_records"`
	}
	Member struct {
		Member    int `json:"member"`
		TimeoutMs int `json:"timeout_ms"`
	}
	Acknowledge struct {
		Member    int    `json:"member"`
		Partition int    `json:"partition"`
		Offset    int64  `json:"offset"`
		How       string `json:"how"`
	}
	OpenTransactions struct {
		Producer        int    `json:"producer"`
		TransactionalID string `json:"transactional_id"`
		TimeoutMs       int    `json:"timeout_ms"`
	}
	Transactions struct {
		Producer int      `json:"producer"`
		Topic    string   `json:"topic"`
		Records  []Record `json:"records"`
	}
	Copy struct {
		TransactionalID string `json:"transactional_id"`
		Group           string `json:"group"`
		Source          string `json:"source"`
		Target          string `json:"target"`
		Count           int    `json:"count"`
		Commit          bool   `json:"commit"`
	}
)

// What is answered where that is more than a value.
type (
	Cluster struct {
		ClusterID    string   `json:"cluster_id"`
		ControllerID int      `json:"controller_id"`
		Brokers      [][2]any `json:"brokers"`
	}
	Group struct {
		State   string `json:"state"`
		Members int    `json:"members"`
	}
	Nothing struct{}
)

// Op answers one kind of question.
type Op func(question json.RawMessage) (any, error)

// Asked makes an Op of a function of its arguments.
func Asked[Q any](answer func(Q) (any, error)) Op {
	return func(question json.RawMessage) (any, error) {
		var arguments Q
		if err := json.Unmarshal(question, &arguments); err != nil {
			return nil, err
		}
		return answer(arguments)
	}
}

// Hello is what a driver says of its client.
type Hello struct {
	Version    string   `json:"version"`
	Features   []string `json:"features"`
	Strategies []string `json:"strategies"`
	Ops        []string `json:"ops"`
}

// VersionOf is the version of a module that this program is built of.
func VersionOf(module string) string {
	built, _ := debug.ReadBuildInfo()
	for _, dependency := range built.Deps {
		if dependency.Path == module {
			return dependency.Version[1:]
		}
	}
	panic("not built with " + module)
}

// Serve answers questions until stdin ends, and then ends the program. Code finds the broker's error code in an
// error of the client.
func Serve(hello Hello, code func(error) (int, bool), ops map[string]Op) {
	var writing sync.Mutex
	out := json.NewEncoder(os.Stdout)
	say := func(message any) {
		writing.Lock()
		defer writing.Unlock()
		if err := out.Encode(message); err != nil {
			os.Exit(1)
		}
	}
	for op := range ops {
		hello.Ops = append(hello.Ops, op)
	}
	sort.Strings(hello.Ops)
	say(hello)
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			os.Exit(0)
		}
		go func() {
			var question struct {
				ID int    `json:"id"`
				Op string `json:"op"`
			}
			if err := json.Unmarshal(line, &question); err != nil {
				panic(err)
			}
			answer, err := ops[question.Op](line)
			say(reply(question.ID, answer, err, code))
		}()
	}
}

func reply(id int, answer any, err error, code func(error) (int, bool)) map[string]any {
	if err == nil {
		return map[string]any{"id": id, "ok": answer}
	}
	var refused Refused
	if !errors.As(err, &refused) {
		found, ok := code(err)
		if !ok {
			return map[string]any{"id": id, "failed": err.Error()}
		}
		refused = Refused{found, err.Error()}
	}
	return map[string]any{"id": id, "refused": refused.Code, "text": refused.Text}
}

// Opened are the group members or the producers of a driver, by the number that their asker gave them.
type Opened[T any] struct {
	open sync.Map
}

func (o *Opened[T]) Put(number int, one T) { o.open.Store(number, one) }

func (o *Opened[T]) Get(number int) T {
	one, _ := o.open.Load(number)
	return one.(T)
}

func (o *Opened[T]) Take(number int) T {
	one, _ := o.open.LoadAndDelete(number)
	return one.(T)
}
