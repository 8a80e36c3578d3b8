// @platformatic/kafka: pure JavaScript; its consumers are always members of a group.

import { randomUUID } from 'node:crypto'
import { Admin, Consumer, Producer } from '@platformatic/kafka'
import { Inbox, Refused, bootstrap, bytes, countedFrom, login, serve, text, tls } from './protocol.mjs'

const ACKS = { all: -1, 1: 1, 0: 0 }
const TOPIC = 2
const SET = 0
const DEFAULT_CONFIG = 5
const EARLIEST = -2n
const LATEST = -1n
const READ_UNCOMMITTED = 0
const READ_COMMITTED = 1

const sasl = login?.mechanism && {
  mechanism: login.mechanism, username: login.user, password: login.password, token: login.bearer_token
}
const connection = {
  clientId: 'platformatic',
  bootstrapBrokers: bootstrap.split(','),
  retries: 20,
  retryDelay: 200,
  metadataMaxAge: 100,
  ...(login && { tls }),
  ...(sasl && { sasl })
}
// It retries much that is an answer, such as "unknown topic".
const admin = new Admin({ ...connection, retries: 3 })

/** The broker's code may be below several layers of "some of these failed" and their causes. */
function refusal (error) {
  const left = [error]
  let own
  while (left.length) {
    const next = left.shift()
    if (!next) continue
    if (Number.isInteger(next.apiCode)) return new Refused(next.apiCode, next.serverErrorMessage ?? next.message)
    if (next.code?.startsWith?.('PLT_KFK')) own = next
    left.push(...(next.errors ?? []), next.cause)
  }
  // Its own: it has lost the broker.
  return own && new Refused(-1, own.message)
}

const toRecord = ({ partition, offset, key, value, headerEntries, timestamp }) => ({
  value: text(value),
  key: text(key),
  headers: headerEntries.map(([name, one]) => [name.toString(), text(one)]),
  timestamp_ms: Number(timestamp),
  partition,
  offset: Number(offset)
})

const toMessage = topic => ({ value, key, headers, timestamp_ms: timestamp, partition }) => ({
  topic,
  partition,
  value: bytes(value),
  key: bytes(key),
  // Keys of a map by identity: names may repeat.
  headers: new Map(headers.map(([name, one]) => [Buffer.from(name), bytes(one)])),
  ...(timestamp === null ? {} : { timestamp: BigInt(timestamp) })
})

async function produce ({ topic, records, codec, acks, idempotent }) {
  const producer = new Producer({ ...connection, autocreateTopics: true })
  try {
    const { offsets } = await producer.send({
      messages: records.map(toMessage(topic)), acks: ACKS[acks], compression: codec, idempotent
    })
    return countedFrom((offsets ?? []).map(({ partition, offset }) => [partition, Number(offset)]), records)
  } finally {
    await producer.close()
  }
}

async function listed (topic, partition, timestamp, isolationLevel = READ_UNCOMMITTED) {
  const [{ partitions: [found] }] = await admin.listOffsets({
    isolationLevel,
    topics: [{ name: topic, partitions: [{ partitionIndex: partition, timestamp }] }]
  })
  return Number(found.offset)
}

const partitionsOf = async topic => {
  const { topics } = await admin.metadata({ topics: [topic], forceUpdate: true })
  return topics.get(topic).partitionsCount
}

class Follower {
  constructor (settings) {
    this.inbox = new Inbox()
    this.assigned = []
    this.positions = new Map()
    this.keeps = settings.groupProtocol === 'consumer' || settings.protocols?.[0].name === 'cooperative-sticky'
    this.consumer = new Consumer({ ...connection, heartbeatInterval: 500, maxWaitTime: 500, ...settings })
    this.consumer.on('consumer:group:join', ({ assignments }) => {
      this.assigned = (assignments ?? []).flatMap(({ partitions }) => partitions)
    })
    for (const event of ['consumer:group:rebalance', 'consumer:group:rejoin']) {
      this.consumer.on(event, () => { this.assigned = [] })
    }
  }

  /** Where members keep partitions through a rebalance, no event tells what it has. */
  assignment () {
    if (!this.keeps) return this.assigned
    return (this.consumer.assignments ?? []).flatMap(({ partitions }) => partitions)
  }

  async open (topic, how) {
    this.topic = topic
    this.stream = await this.consumer.consume({ topics: [topic], autocommit: false, ...how })
    this.stream.on('data', message => this.inbox.put(toRecord(message)))
    this.stream.on('error', error => { this.error = error; this.inbox.put(null) })
    return this
  }

  async poll (timeoutMs) {
    const found = await this.inbox.take(timeoutMs)
    if (this.error) throw this.error
    for (const { partition, offset } of found) this.positions.set(partition, offset + 1)
    return found
  }

  commit () {
    const offsets = [...this.positions].map(([partition, offset]) => (
      { topic: this.topic, partition, offset: BigInt(offset), leaderEpoch: -1 }))
    return this.consumer.commit({ offsets })
  }

  async close () {
    await this.stream?.close()
    await this.consumer.close(true)
  }
}

/** A reader is the only member of a group of its own, which is deleted afterwards. */
async function alone (settings, use) {
  const groupId = `platformatic-${randomUUID()}`
  const follower = new Follower({ groupId, ...settings })
  try {
    return await use(follower)
  } finally {
    await follower.close()
    await admin.deleteGroups({ groups: [groupId] }).catch(() => {})
  }
}

async function read ({ topic, partitions, start, fetch_bytes: limit, committed }) {
  const isolationLevel = committed ? READ_COMMITTED : READ_UNCOMMITTED
  const wanted = new Map()
  const offsets = []
  for (let partition = 0; partition < await partitionsOf(topic); partition++) {
    const low = await listed(topic, partition, EARLIEST)
    const high = await listed(topic, partition, LATEST, isolationLevel)
    const first = partitions.includes(partition) ? start ?? low : high
    offsets.push({ topic, partition, offset: BigInt(first) })
    if (first < high) wanted.set(partition, high)
  }
  if (wanted.size === 0) return []
  const limits = limit === null ? {} : { maxBytes: limit, maxBytesPerPartition: limit }
  return alone({ isolationLevel, ...limits }, async follower => {
    await follower.open(topic, { mode: 'manual', offsets })
    const found = []
    while (wanted.size) {
      for (const record of await follower.poll(1000)) {
        if (partitions.includes(record.partition)) found.push(record)
        if (record.offset + 1 >= wanted.get(record.partition)) wanted.delete(record.partition)
      }
    }
    return found
  })
}

async function readOutOfRange ({ topic, offset, reset }) {
  const high = await listed(topic, 0, LATEST)
  return alone({}, async follower => {
    const fallbackMode = reset === 'none' ? 'fail' : reset
    const offsets = [{ topic, partition: 0, offset: BigInt(offset) }]
    try {
      await follower.open(topic, { mode: 'manual', offsets, fallbackMode })
      for (let tries = 0; tries < 50; tries++) {
        // At the end there is nothing to read until something is written.
        if (reset === 'latest') {
          const record = { value: '', key: null, headers: [], timestamp_ms: null, partition: 0 }
          await produce({ topic, records: [record], codec: 'none', acks: 'all', idempotent: false })
        }
        const [first] = await follower.poll(400)
        if (first) return Math.min(first.offset, high)
      }
    } catch (error) {
      if (refusal(error)?.code === 1) return null
      throw error
    }
    throw new Error('the consumer neither moved nor failed')
  })
}

const members = new Map()
const producers = new Map()

// Unless told that it holds none, it says that it holds producer id 0.
const NEW_PRODUCER = { producerId: -1n, producerEpoch: -1 }

function transactional (transactionalId, timeout = 60000) {
  // Its timeout is that of a write and of a transaction.
  return new Producer({ ...connection, transactionalId, idempotent: true, timeout })
}

async function copy ({ transactional_id: transactionalId, group, source, target, count, commit }) {
  const producer = transactional(transactionalId)
  const follower = new Follower({ groupId: group })
  const last = new Map()
  try {
    await follower.open(source, { mode: 'committed', fallbackMode: 'earliest' })
    follower.stream.on('data', message => last.set(message.partition, message))
    const transaction = await producer.beginTransaction(NEW_PRODUCER)
    await transaction.addConsumer(follower.consumer)
    for (let read = 0; read < count;) {
      const found = await follower.poll(1000)
      if (found.length) {
        await transaction.send({ messages: found.map(({ value }) => ({ topic: target, partition: 0, value: bytes(value) })) })
      }
      read += found.length
    }
    for (const message of last.values()) await transaction.addOffset(message)
    await (commit ? transaction.commit() : transaction.abort())
  } finally {
    await follower.close()
    await producer.close()
  }
}

/** A member of either protocol. */
async function joined (member, topic, settings) {
  const follower = new Follower(settings)
  members.set(member, follower)
  await follower.open(topic, { mode: 'committed', fallbackMode: 'earliest' })
}

serve('@platformatic/kafka', {
  // Of a producer's aborted transactions in one answer it knows the last alone, and shows the others: no isolation.
  features: ['ordered_headers', 'null_headers', 'timestamps', 'idempotent', 'commit'],
  strategies: ['roundrobin', 'cooperative-sticky'],
  refusal
}, {
  produce,
  read,
  read_out_of_range: readOutOfRange,
  beginning: ({ topic, partition }) => listed(topic, partition, EARLIEST),
  end: ({ topic, partition }) => listed(topic, partition, LATEST),
  async offset_at ({ topic, partition, timestamp_ms: timestamp }) {
    const found = await listed(topic, partition, BigInt(timestamp))
    return found < 0 ? null : found
  },

  async 'member.open' ({ member, group, topic, instance_id: instanceId, session_timeout_ms: sessionTimeout, strategy }) {
    await joined(member, topic, {
      groupId: group,
      sessionTimeout,
      rebalanceTimeout: Math.max(10000, sessionTimeout),
      protocols: [{ name: strategy, version: 1 }],
      ...(instanceId === null ? {} : { groupInstanceId: instanceId })
    })
  },
  async 'consumer_member.open' ({ member, group, topic, instance_id: instanceId, assignor }) {
    await joined(member, topic, {
      groupId: group,
      groupProtocol: 'consumer',
      ...(assignor === null ? {} : { groupRemoteAssignor: assignor }),
      ...(instanceId === null ? {} : { groupInstanceId: instanceId })
    })
  },
  'member.poll': ({ member, timeout_ms: timeoutMs }) => members.get(member).poll(timeoutMs),
  'member.assignment': ({ member }) => members.get(member).assignment(),
  'member.commit': ({ member }) => members.get(member).commit(),
  async 'member.close' ({ member }) {
    await members.get(member).close()
    members.delete(member)
  },

  async 'transactions.open' ({ producer: number, transactional_id: id, timeout_ms: timeout }) {
    producers.set(number, { producer: transactional(id, timeout) })
  },
  async 'transactions.begin' ({ producer: number }) {
    const opened = producers.get(number)
    opened.transaction = await opened.producer.beginTransaction(NEW_PRODUCER)
  },
  async 'transactions.send' ({ producer: number, topic, records }) {
    await producers.get(number).transaction.send({ messages: records.map(toMessage(topic)) })
  },
  'transactions.commit': ({ producer: number }) => producers.get(number).transaction.commit(),
  'transactions.abort': ({ producer: number }) => producers.get(number).transaction.abort(),
  async 'transactions.close' ({ producer: number }) {
    await producers.get(number).producer.close()
    producers.delete(number)
  },
  copy,

  async committed ({ group, topic, partition }) {
    const [{ topics }] = await admin.listConsumerGroupOffsets({
      groups: [{ groupId: group, topics: [{ name: topic, partitionIndexes: [partition] }] }]
    })
    const found = Number(topics[0]?.partitions[0]?.committedOffset ?? -1)
    return found < 0 ? null : found
  },

  async cluster () {
    const { id, controllerId, brokers } = await admin.metadata({ topics: [], forceUpdate: true })
    return {
      cluster_id: id,
      controller_id: controllerId,
      brokers: [...brokers].map(([node, { host, port }]) => [node, `${host}:${port}`])
    }
  },

  async create_topic ({ name, partitions, configs, replication_factor: replicas }) {
    const entries = Object.entries(configs).map(([key, value]) => ({ name: key, value }))
    await admin.createTopics({ topics: [name], partitions, replicas, configs: entries })
  },
  topics: () => admin.listTopics({ includeInternals: true }),
  partitions: ({ topic }) => partitionsOf(topic),
  delete_topic: ({ name }) => admin.deleteTopics({ topics: [name] }),
  add_partitions: ({ topic, total }) => admin.createPartitions({ topics: [{ name: topic, count: total}] }),
  async config ({ topic }) {
    const [{ configs }] = await admin.describeConfigs({ resources: [{ resourceType: TOPIC, resourceName: topic }] })
    return Object.fromEntries(configs.map(one => [one.name, [one.value, one.configSource === DEFAULT_CONFIG]]))
  },
  set_config: ({ topic, key, value }) => admin.incrementalAlterConfigs({
    resources: [{ resourceType: TOPIC, resourceName: topic, configs: [{ name: key, configOperation: SET, value }] }]
  }),
  async delete_records ({ topic, before, partition }) {
    await admin.deleteRecords({ topics: [{ name: topic, partitions: [{ partition, offset: BigInt(before) }] }] })
  },

  groups: async () => [...(await admin.listGroups()).keys()],
  async group ({ group }) {
    const found = (await admin.describeGroups({ groups: [group] })).get(group)
    const state = found.state.toLowerCase().replace(/(^|_)./g, start => start.at(-1).toUpperCase())
    return { state, members: found.members.size }
  },
  delete_group: ({ group }) => admin.deleteGroups({ groups: [group] }),
  async delete_offset ({ group, topic, partition }) {
    await admin.deleteConsumerGroupOffsets({ groupId: group, topics: [{ name: topic, partitionIndexes: [partition] }] })
  }
})
