//! rust-rdkafka: librdkafka, in Rust. The driver's side of the protocol of ../../driven.py, each question
//! answered by a thread of its own.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::executor::block_on;
use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, ConfigSource, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(30);
const LOCK: &str = include_str!("../Cargo.lock");

/// What a question comes to when it is not answered: the broker's code (or librdkafka's own, below zero) and words.
struct Refused(i32, String);
type Answer = Result<Value, Refused>;

impl From<KafkaError> for Refused {
    fn from(error: KafkaError) -> Self {
        let code = error.rdkafka_error_code().map_or(-1, |code| code as i32);
        Refused(code, error.to_string())
    }
}

impl From<RDKafkaErrorCode> for Refused {
    fn from(code: RDKafkaErrorCode) -> Self {
        Refused(code as i32, code.to_string())
    }
}

fn text<'a>(question: &'a Value, name: &str) -> &'a str {
    question[name].as_str().unwrap_or_default()
}

fn number(question: &Value, name: &str) -> i64 {
    question[name].as_i64().unwrap_or_default()
}

fn partition(question: &Value) -> i32 {
    number(question, "partition") as i32
}

fn bytes(text: &Value) -> Option<Vec<u8>> {
    text.as_str().map(|encoded| STANDARD.decode(encoded).expect("base64"))
}

fn encoded(data: Option<&[u8]>) -> Value {
    data.map_or(Value::Null, |data| json!(STANDARD.encode(data)))
}

fn to_json(message: &BorrowedMessage) -> Value {
    let headers: Vec<Value> = message.headers().map_or(vec![], |headers| {
        headers.iter().map(|header| json!([header.key, encoded(header.value)])).collect()
    });
    json!({
        "value": encoded(message.payload()),
        "key": encoded(message.key()),
        "headers": headers,
        "timestamp_ms": message.timestamp().to_millis(),
        "partition": message.partition(),
        "offset": message.offset(),
    })
}

fn config(settings: &[(&str, String)]) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", std::env::args().nth(1).expect("a bootstrap address"));
    config.set("enable.metrics.push", "false").set("log_level", "0");
    for (key, value) in &*SECURED {
        config.set(key, value);
    }
    for (key, value) in settings {
        config.set(*key, value);
    }
    config
}

/// How a secured listener is reached, in the words of librdkafka (`Login.for_driver`).
static SECURED: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let Some(login) = std::env::args().nth(2) else { return vec![] };
    let login: Value = serde_json::from_str(&login).expect("a login");
    let settings = login["librdkafka"].as_object().expect("settings");
    settings.iter().map(|(key, value)| (key.clone(), value.as_str().expect("text").to_string())).collect()
});

static ADMIN: LazyLock<AdminClient<DefaultClientContext>> = LazyLock::new(|| config(&[]).create().expect("an admin"));
static PRODUCERS: LazyLock<Mutex<HashMap<i64, FutureProducer>>> = LazyLock::new(Default::default);
static MEMBERS: LazyLock<Mutex<HashMap<i64, Arc<BaseConsumer>>>> = LazyLock::new(Default::default);

fn consumer(settings: &[(&str, String)]) -> Result<BaseConsumer, KafkaError> {
    let mut all = config(&[
        ("group.id", "not-a-group".into()),
        ("enable.auto.commit", "false".into()),
        ("auto.offset.reset", "error".into()),
    ]);
    for (key, value) in settings {
        all.set(*key, value);
    }
    all.create()
}

fn produce(question: &Value) -> Answer {
    let topic = text(question, "topic");
    let producer: FutureProducer = config(&[
        ("acks", text(question, "acks").into()),
        ("compression.type", text(question, "codec").into()),
        ("enable.idempotence", question["idempotent"].to_string()),
        ("linger.ms", "5".into()),
        ("message.max.bytes", (4 << 20).to_string()),
        ("message.timeout.ms", "30000".into()),
        ("topic.metadata.refresh.interval.ms", "100".into()),
    ])
    .create()?;
    let mut sent = vec![];
    for record in question["records"].as_array().expect("records") {
        let (key, value) = (bytes(&record["key"]), bytes(&record["value"]));
        let mut headers = OwnedHeaders::new();
        for header in record["headers"].as_array().expect("headers") {
            let value = bytes(&header[1]);
            headers = headers.insert(Header { key: header[0].as_str().expect("a name"), value: value.as_ref() });
        }
        let record = FutureRecord {
            topic,
            partition: Some(partition(record)),
            payload: value.as_ref(),
            key: key.as_ref(),
            timestamp: record["timestamp_ms"].as_i64(),
            headers: Some(headers),
        };
        sent.push(producer.send_result(record).map_err(|(error, _)| error)?);
    }
    let mut offsets = vec![];
    for delivered in sent {
        let delivery = block_on(delivered).map_err(|_| KafkaError::Canceled)?;
        offsets.push(delivery.map_err(|(error, _)| error)?.offset);
    }
    Ok(json!(offsets))
}

fn assignment(topic: &str, partitions: &[Value], offset: Offset) -> Result<TopicPartitionList, KafkaError> {
    let mut list = TopicPartitionList::new();
    for partition in partitions {
        list.add_partition_offset(topic, partition.as_i64().expect("a partition") as i32, offset)?;
    }
    Ok(list)
}

fn read(question: &Value) -> Answer {
    let isolation = if question["committed"] == json!(true) { "read_committed" } else { "read_uncommitted" };
    let mut settings = vec![
        ("enable.partition.eof", "true".to_string()),
        ("isolation.level", isolation.to_string()),
        // It finds an end when a fetch has waited in vain.
        ("fetch.wait.max.ms", "50".to_string()),
    ];
    if let Some(limit) = question["fetch_bytes"].as_i64() {
        settings.push(("fetch.message.max.bytes", limit.to_string()));
        settings.push(("fetch.max.bytes", limit.to_string()));
        settings.push(("message.max.bytes", "1000".to_string()));
    }
    let consumer = consumer(&settings)?;
    let first = question["start"].as_i64().map_or(Offset::Beginning, Offset::Offset);
    let partitions = question["partitions"].as_array().expect("partitions");
    consumer.assign(&assignment(text(question, "topic"), partitions, first)?)?;
    let (mut found, mut ended, deadline) = (vec![], 0, Instant::now() + TIMEOUT);
    while ended < partitions.len() {
        match consumer.poll(Duration::from_millis(200)) {
            Some(Ok(message)) => found.push(to_json(&message)),
            Some(Err(KafkaError::PartitionEOF(_))) => ended += 1,
            Some(Err(error)) if is_broken_off(&error) => {}
            Some(Err(error)) => return Err(error.into()),
            None if Instant::now() > deadline => return Err(Refused(-185, "not read to its end".into())),
            None => {}
        }
    }
    Ok(json!(found))
}

/// A connection has ended: librdkafka only says so, and goes on over another.
fn is_broken_off(error: &KafkaError) -> bool {
    use RDKafkaErrorCode::{AllBrokersDown, BrokerTransportFailure};
    matches!(error.rdkafka_error_code(), Some(AllBrokersDown | BrokerTransportFailure))
}

fn read_out_of_range(question: &Value) -> Answer {
    let topic = text(question, "topic");
    let reset = text(question, "reset").replace("none", "error");
    let consumer = consumer(&[("enable.partition.eof", "true".into()), ("auto.offset.reset", reset)])?;
    consumer.assign(&assignment(topic, &[json!(0)], Offset::Offset(number(question, "offset")))?)?;
    match consumer.poll(TIMEOUT) {
        Some(Ok(message)) => Ok(json!(message.offset())),
        Some(Err(KafkaError::PartitionEOF(_))) => Ok(json!(watermarks(topic, 0)?.1)),
        Some(Err(error)) if error.rdkafka_error_code() == Some(RDKafkaErrorCode::AutoOffsetReset) => Ok(Value::Null),
        Some(Err(error)) => Err(error.into()),
        None => Err(Refused(-185, "the consumer neither moved nor failed".into())),
    }
}

fn watermarks(topic: &str, partition: i32) -> Result<(i64, i64), KafkaError> {
    consumer(&[])?.fetch_watermarks(topic, partition, TIMEOUT)
}

fn offset_at(question: &Value) -> Answer {
    let mut wanted = TopicPartitionList::new();
    let at = Offset::Offset(number(question, "timestamp_ms"));
    wanted.add_partition_offset(text(question, "topic"), partition(question), at)?;
    let found = consumer(&[])?.offsets_for_times(wanted, TIMEOUT)?;
    // It says "end" where the broker says that there is none.
    match found.elements()[0].offset() {
        Offset::Offset(offset) => Ok(json!(offset)),
        _ => Ok(Value::Null),
    }
}

fn open_member(question: &Value) -> Answer {
    let mut settings = vec![
        ("group.id", text(question, "group").to_string()),
        ("auto.offset.reset", "earliest".to_string()),
        ("session.timeout.ms", number(question, "session_timeout_ms").to_string()),
        ("heartbeat.interval.ms", "500".to_string()),
        ("partition.assignment.strategy", text(question, "strategy").to_string()),
    ];
    join(question, &mut settings)
}

fn open_consumer_member(question: &Value) -> Answer {
    let mut settings = vec![
        ("group.id", text(question, "group").to_string()),
        ("group.protocol", "consumer".to_string()),
        ("auto.offset.reset", "earliest".to_string()),
    ];
    if let Some(assignor) = question["assignor"].as_str() {
        settings.push(("group.remote.assignor", assignor.to_string()));
    }
    join(question, &mut settings)
}

fn join(question: &Value, settings: &mut Vec<(&str, String)>) -> Answer {
    if let Some(instance) = question["instance_id"].as_str() {
        settings.push(("group.instance.id", instance.to_string()));
    }
    let member = consumer(settings)?;
    member.subscribe(&[text(question, "topic")])?;
    MEMBERS.lock().unwrap().insert(number(question, "member"), Arc::new(member));
    Ok(Value::Null)
}

fn member(question: &Value) -> Arc<BaseConsumer> {
    MEMBERS.lock().unwrap()[&number(question, "member")].clone()
}

fn poll(question: &Value) -> Answer {
    let member = member(question);
    let mut found = vec![];
    let mut timeout = Duration::from_millis(number(question, "timeout_ms") as u64);
    while let Some(polled) = member.poll(timeout) {
        match polled {
            Err(error) if is_broken_off(&error) => {}
            polled => found.push(to_json(&polled?)),
        }
        timeout = Duration::ZERO;
    }
    Ok(json!(found))
}

fn transactional(id: &str, timeout_ms: i64) -> Result<FutureProducer, KafkaError> {
    let producer: FutureProducer = config(&[
        ("transactional.id", id.into()),
        ("transaction.timeout.ms", timeout_ms.to_string()),
        // A delivery may not take longer than its transaction.
        ("message.timeout.ms", timeout_ms.to_string()),
    ])
    .create()?;
    producer.init_transactions(TIMEOUT)?;
    Ok(producer)
}

fn open_transactions(question: &Value) -> Answer {
    let producer = transactional(text(question, "transactional_id"), number(question, "timeout_ms"))?;
    PRODUCERS.lock().unwrap().insert(number(question, "producer"), producer);
    Ok(Value::Null)
}

fn producer(question: &Value) -> FutureProducer {
    PRODUCERS.lock().unwrap()[&number(question, "producer")].clone()
}

fn write(producer: &FutureProducer, topic: &str, records: &[(i32, Option<Vec<u8>>)]) -> Result<(), KafkaError> {
    let mut sent = vec![];
    for (partition, value) in records {
        let mut record: FutureRecord<(), Vec<u8>> = FutureRecord::to(topic).partition(*partition);
        record.payload = value.as_ref();
        sent.push(producer.send_result(record).map_err(|(error, _)| error)?);
    }
    for delivered in sent {
        block_on(delivered).map_err(|_| KafkaError::Canceled)?.map_err(|(error, _)| error)?;
    }
    Ok(())
}

fn send(question: &Value) -> Answer {
    let records = question["records"].as_array().expect("records");
    let records: Vec<_> = records.iter().map(|record| (partition(record), bytes(&record["value"]))).collect();
    write(&producer(question), text(question, "topic"), &records)?;
    Ok(Value::Null)
}

fn copy(question: &Value) -> Answer {
    let member = consumer(&[
        ("group.id", text(question, "group").to_string()),
        ("auto.offset.reset", "earliest".to_string()),
    ])?;
    member.subscribe(&[text(question, "source")])?;
    let producer = transactional(text(question, "transactional_id"), 60_000)?;
    producer.begin_transaction()?;
    let (mut found, deadline) = (vec![], Instant::now() + TIMEOUT);
    while (found.len() as i64) < number(question, "count") {
        // A rebalance ends a poll without a record.
        match member.poll(Duration::from_millis(200)) {
            Some(Err(error)) if is_broken_off(&error) => {}
            Some(polled) => found.push((0, polled?.payload().map(|value| value.to_vec()))),
            None if Instant::now() > deadline => return Err(Refused(-185, "not read to its end".into())),
            None => {}
        }
    }
    write(&producer, text(question, "target"), &found)?;
    let group = member.group_metadata().expect("it is a member");
    producer.send_offsets_to_transaction(&member.position()?, &group, TIMEOUT)?;
    if question["commit"] == json!(true) {
        producer.commit_transaction(TIMEOUT)?;
    } else {
        producer.abort_transaction(TIMEOUT)?;
    }
    Ok(Value::Null)
}

fn committed(group: &str, topic: &str, partition: i32) -> Result<(Offset, String), KafkaError> {
    let mut wanted = TopicPartitionList::new();
    wanted.add_partition(topic, partition);
    let found = consumer(&[("group.id", group.into())])?.committed_offsets(wanted, TIMEOUT)?;
    let element = &found.elements()[0];
    Ok((element.offset(), element.metadata().to_string()))
}

fn commit_metadata(question: &Value) -> Answer {
    let (group, topic) = (text(question, "group"), text(question, "topic"));
    let mut commit = TopicPartitionList::new();
    commit.add_partition_offset(topic, 0, Offset::Offset(number(question, "offset")))?;
    commit.find_partition(topic, 0).expect("it was added").set_metadata(text(question, "metadata"));
    consumer(&[("group.id", group.into())])?.commit(&commit, CommitMode::Sync)?;
    Ok(json!(committed(group, topic, 0)?.1))
}

fn create_topic(question: &Value) -> Answer {
    let replication = TopicReplication::Fixed(number(question, "replication_factor") as i32);
    let mut topic = NewTopic::new(text(question, "name"), number(question, "partitions") as i32, replication);
    for (key, value) in question["configs"].as_object().expect("configs") {
        topic = topic.set(key, value.as_str().expect("a value"));
    }
    nothing(block_on(ADMIN.create_topics([&topic], &options()))?)
}

fn options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(TIMEOUT)).operation_timeout(Some(TIMEOUT))
}

/// The only result of an admin call that answers each name with itself or an error code.
fn nothing(results: Vec<Result<String, (String, RDKafkaErrorCode)>>) -> Answer {
    for result in results {
        result.map_err(|(_, code)| code)?;
    }
    Ok(Value::Null)
}

fn describe(question: &Value) -> Answer {
    let resource = ResourceSpecifier::Topic(text(question, "topic"));
    let mut entries = serde_json::Map::new();
    for described in block_on(ADMIN.describe_configs([&resource], &options()))? {
        for entry in described?.entries {
            let is_default = matches!(entry.source, ConfigSource::Default);
            entries.insert(entry.name, json!([entry.value, is_default]));
        }
    }
    Ok(Value::Object(entries))
}

fn set_config(question: &Value) -> Answer {
    let change = AlterConfig::new(ResourceSpecifier::Topic(text(question, "topic")))
        .set(text(question, "key"), text(question, "value"));
    for result in block_on(ADMIN.alter_configs([&change], &options()))? {
        result.map_err(|(_, code)| code)?;
    }
    Ok(Value::Null)
}

fn delete_records(question: &Value) -> Answer {
    let mut before = TopicPartitionList::new();
    let offset = Offset::Offset(number(question, "before"));
    before.add_partition_offset(text(question, "topic"), partition(question), offset)?;
    for element in block_on(ADMIN.delete_records(&before, &options()))?.elements() {
        element.error()?;
    }
    Ok(Value::Null)
}

fn topics(question: &Value) -> Answer {
    let seen = ADMIN.inner().fetch_metadata(question["topic"].as_str(), TIMEOUT)?;
    if let Some(topic) = question["topic"].as_str() {
        let found = seen.topics().iter().find(|found| found.name() == topic);
        return Ok(json!(found.map_or(0, |found| found.partitions().len())));
    }
    Ok(json!(seen.topics().iter().map(|topic| topic.name()).collect::<Vec<_>>()))
}

fn groups(question: &Value) -> Answer {
    let seen = ADMIN.inner().fetch_group_list(question["group"].as_str(), TIMEOUT)?;
    if question["group"].is_string() {
        let found = &seen.groups()[0];
        return Ok(json!({"state": found.state(), "members": found.members().len()}));
    }
    Ok(json!(seen.groups().iter().map(|group| group.name()).collect::<Vec<_>>()))
}

type Op = fn(&Value) -> Answer;

const OPS: &[(&str, Op)] = &[
    ("produce", produce),
    ("read", read),
    ("read_out_of_range", read_out_of_range),
    ("beginning", |q| Ok(json!(watermarks(text(q, "topic"), partition(q))?.0))),
    ("end", |q| Ok(json!(watermarks(text(q, "topic"), partition(q))?.1))),
    ("offset_at", offset_at),
    ("member.open", open_member),
    ("consumer_member.open", open_consumer_member),
    ("member.poll", poll),
    ("member.assignment", |q| {
        let assigned = member(q).assignment()?;
        Ok(json!(assigned.elements().iter().map(|element| element.partition()).collect::<Vec<_>>()))
    }),
    ("member.commit", |q| {
        member(q).commit_consumer_state(CommitMode::Sync)?;
        Ok(Value::Null)
    }),
    ("member.close", |q| {
        // It leaves its group when it is dropped.
        MEMBERS.lock().unwrap().remove(&number(q, "member"));
        Ok(Value::Null)
    }),
    ("committed", |q| match committed(text(q, "group"), text(q, "topic"), partition(q))?.0 {
        Offset::Offset(offset) => Ok(json!(offset)),
        _ => Ok(Value::Null),
    }),
    ("commit_metadata", commit_metadata),
    ("transactions.open", open_transactions),
    ("transactions.begin", |q| {
        producer(q).begin_transaction()?;
        Ok(Value::Null)
    }),
    ("transactions.send", send),
    ("transactions.commit", |q| {
        producer(q).commit_transaction(TIMEOUT)?;
        Ok(Value::Null)
    }),
    ("transactions.abort", |q| {
        producer(q).abort_transaction(TIMEOUT)?;
        Ok(Value::Null)
    }),
    ("transactions.close", |q| {
        PRODUCERS.lock().unwrap().remove(&number(q, "producer"));
        Ok(Value::Null)
    }),
    ("copy", copy),
    ("create_topic", create_topic),
    ("topics", topics),
    ("partitions", topics),
    ("delete_topic", |q| nothing(block_on(ADMIN.delete_topics(&[text(q, "name")], &options()))?)),
    ("add_partitions", |q| {
        let wanted = NewPartitions::new(text(q, "topic"), number(q, "total") as usize);
        nothing(block_on(ADMIN.create_partitions([&wanted], &options()))?)
    }),
    ("config", describe),
    ("set_config", set_config),
    ("delete_records", delete_records),
    ("groups", groups),
    ("group", groups),
    ("delete_group", |q| nothing(block_on(ADMIN.delete_groups(&[text(q, "group")], &options()))?)),
];

fn say(message: Value) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{message}").and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}

fn answer(question: Value) {
    let id = &question["id"];
    let found = OPS.iter().find(|(op, _)| *op == text(&question, "op"));
    match found.expect("an op that was offered").1(&question) {
        Ok(answer) => say(json!({"id": id, "ok": answer})),
        Err(Refused(code, words)) => say(json!({"id": id, "refused": code, "text": words})),
    }
}

fn main() {
    let locked = LOCK.split("name = \"rdkafka\"\nversion = \"").nth(1).expect("rdkafka in the lock file");
    let version = locked.split('"').next().expect("its version");
    say(json!({
        "version": format!("{version} (librdkafka {})", rdkafka::util::get_rdkafka_version().1),
        "ops": OPS.iter().map(|(op, _)| op).collect::<Vec<_>>(),
        "features": ["ordered_headers", "null_headers", "append_time", "timestamps", "idempotent", "range", "commit", "isolation", "stable_end"],
        "strategies": ["roundrobin", "cooperative-sticky"],
    }));
    for line in std::io::stdin().lock().lines() {
        let question: Value = serde_json::from_str(&line.expect("a line")).expect("a question");
        std::thread::spawn(move || answer(question));
    }
    std::process::exit(0);
}
