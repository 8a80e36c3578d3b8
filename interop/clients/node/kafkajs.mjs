// kafkajs: pure JavaScript; its consumers are always members of a group.

import { randomUUID } from 'node:crypto'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import kafkajs from 'kafkajs'
import snappy from 'kafkajs-snappy'
import lz4 from 'lz4-napi'
import { Inbox, Refused, bootstrap, bytes, countedFrom, login, serve, text, tls } from './protocol.mjs'

const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = kafkajs

// It brings gzip; the others are given to it, as its documentation says.
CompressionCodecs[CompressionTypes.Snappy] = snappy
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async encoder => lz4.compressFrame(encoder.buffer),
  decompress: async buffer => lz4.decompressFrame(buffer)
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => zstdCompressSync(encoder.buffer),
  decompress: async buffer => zstdDecompressSync(buffer)
})
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD
}
const ACKS = { all: -1, 1: 1, 0: 0 }

const sasl = login?.mechanism && {
  mechanism: login.mechanism.toLowerCase(),
  username: login.user,
  password: login.password,
  oauthBearerProvider: async () => ({ value: login.bearer_token })
}

const kafka = new Kafka({
  clientId: 'kafkajs',
  ...(login && { ssl: tls }),
  ...(sasl && { sasl }),
  brokers: bootstrap.split(','),
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 100, retries: 8 }
})
// It retries much that is an answer, such as "unknown topic".
const admin = kafka.admin({ retry: { initialRetryTime: 100, retries: 3 } })
await admin.connect()

/** The broker's code may be below several layers of "retried too often" and "some of these failed". */
function refusal (error) {
  const seen = new Set()
  const left = [error]
  let own
  while (left.length) {
    const next = left.shift()
    if (!next || seen.has(next)) continue
    seen.add(next)
    if (Number.isInteger(next.code)) return new Refused(next.code, next.message)
    if (next.name?.startsWith('KafkaJS')) own = next
    left.push(...(next.errors ?? []), ...(next.groups ?? []).map(group => group.error), ...(next.partitions ?? []),
      next.error, next.originalError, next.cause)
  }
  // Its own: it has lost the broker.
  return own && new Refused(-1, own.message)
}

const toRecord = (partition, { offset, key, value, headers, timestamp }) => ({
  value: text(value),
  key: text(key),
  headers: Object.entries(headers ?? {}).flatMap(([name, values]) => [values].flat().map(one => [name, text(one)])),
  timestamp_ms: Number(timestamp),
  partition,
  offset: Number(offset)
})

const toMessage = ({ value, key, headers, timestamp_ms: timestamp, partition }) => ({
  value: bytes(value),
  key: bytes(key),
  partition,
  headers: Object.fromEntries(headers.map(([name, one]) => [name, bytes(one)])),
  ...(timestamp === null ? {} : { timestamp: String(timestamp) })
})

async function produce ({ topic, records, codec, acks, idempotent }) {
  const producer = kafka.producer({ idempotent, createPartitioner: kafkajs.Partitioners.DefaultPartitioner })
  await producer.connect()
  try {
    const answers = await producer.send({
      topic, acks: ACKS[acks], compression: CODECS[codec], messages: records.map(toMessage)
    })
    const baseOffsets = (answers ?? []).map(({ partition, baseOffset }) => [partition, Number(baseOffset)])
    return countedFrom(baseOffsets, records)
  } finally {
    await producer.disconnect()
  }
}

async function watermarks (topic, partition) {
  const found = (await admin.fetchTopicOffsets(topic)).find(one => one.partition === partition)
  if (!found) throw new Refused(3, `${topic} has no partition ${partition}`)
  return { low: Number(found.low), high: Number(found.high) }
}

class Follower {
  static ofAll = new Map()

  constructor (settings) {
    this.inbox = new Inbox()
    this.assigned = []
    this.positions = new Map()
    this.error = null
    this.consumer = kafka.consumer({ heartbeatInterval: 500, maxWaitTimeInMs: 500, ...settings })
    const { GROUP_JOIN, REBALANCING, CRASH } = this.consumer.events
    this.consumer.on(GROUP_JOIN, ({ payload }) => { this.assigned = payload.memberAssignment })
    this.consumer.on(REBALANCING, () => { this.assigned = {} })
    this.consumer.on(CRASH, ({ payload }) => { if (!payload.restart) this.error = payload.error })
  }

  async open (topic, fromBeginning = true, seeks = []) {
    this.topic = topic
    await this.consumer.connect()
    await this.consumer.subscribe({ topic, fromBeginning })
    await this.consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => this.inbox.put(toRecord(partition, message))
    })
    for (const { partition, offset } of seeks) this.consumer.seek({ topic, partition, offset: String(offset) })
    return this
  }

  async poll (timeoutMs) {
    if (this.error) throw this.error
    const found = await this.inbox.take(timeoutMs)
    for (const { partition, offset } of found) this.positions.set(partition, offset + 1)
    return found
  }

  commit () {
    return this.consumer.commitOffsets([...this.positions].map(([partition, offset]) => (
      { topic: this.topic, partition, offset: String(offset) })))
  }
}

/** A reader is the only member of a group of its own, which is deleted afterwards. */
async function alone (settings, use) {
  const groupId = `kafkajs-${randomUUID()}`
  const follower = new Follower({ groupId, ...settings })
  try {
    return await use(follower)
  } finally {
    await follower.consumer.disconnect()
    await admin.deleteGroups([groupId]).catch(() => {})
  }
}

async function read ({ topic, partitions, start, fetch_bytes: limit, committed }) {
  const wanted = new Map()
  for (const partition of partitions) {
    const { low, high } = await watermarks(topic, partition)
    if (high > (start ?? low)) wanted.set(partition, high)
  }
  if (wanted.size === 0) return []
  const limits = limit === null ? {} : { maxBytesPerPartition: limit, maxBytes: limit }
  return alone({ readUncommitted: !committed, ...limits }, async follower => {
    const seeks = start === null ? [] : partitions.map(partition => ({ partition, offset: start }))
    await follower.open(topic, true, seeks)
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
  const { high } = await watermarks(topic, 0)
  return alone({}, async follower => {
    await follower.open(topic, reset === 'earliest', [{ partition: 0, offset }])
    if (reset === 'earliest') return (await follower.poll(20000))[0].offset
    // At the end there is nothing to read until something is written.
    for (let tries = 0; tries < 50; tries++) {
      await produce({ topic, records: [{ value: '', key: null, headers: [], timestamp_ms: null, partition: 0 }], codec: 'none', acks: 'all', idempotent: false })
      const [first] = await follower.poll(200)
      if (first) return first.offset >= high ? high : first.offset
    }
    throw new Error('the consumer did not move')
  })
}

const members = new Map()
const producers = new Map()

function transactional (transactionalId, transactionTimeout) {
  return kafka.producer({
    transactionalId,
    transactionTimeout,
    idempotent: true,
    maxInFlightRequests: 1,
    createPartitioner: kafkajs.Partitioners.DefaultPartitioner
  })
}

async function copy ({ transactional_id: transactionalId, group, source, target, count, commit }) {
  const producer = transactional(transactionalId, 60000)
  const follower = new Follower({ groupId: group })
  await producer.connect()
  try {
    await follower.open(source)
    const transaction = await producer.transaction()
    for (let read = 0; read < count;) {
      const found = await follower.poll(1000)
      if (found.length) {
        await transaction.send({ topic: target, messages: found.map(({ value }) => ({ value: bytes(value), partition: 0 })) })
      }
      read += found.length
    }
    const partitions = [...follower.positions].map(([partition, offset]) => ({ partition, offset: String(offset) }))
    await transaction.sendOffsets({ consumerGroupId: group, topics: [{ topic: source, partitions }] })
    await (commit ? transaction.commit() : transaction.abort())
  } finally {
    await follower.consumer.disconnect()
    await producer.disconnect()
  }
}

serve('kafkajs', { features: ['append_time', 'timestamps', 'idempotent', 'commit', 'isolation'], strategies: ['RoundRobinAssigner'], refusal }, {
  produce,
  read,
  read_out_of_range: readOutOfRange,
  beginning: async ({ topic, partition }) => (await watermarks(topic, partition)).low,
  end: async ({ topic, partition }) => (await watermarks(topic, partition)).high,

  async offset_at ({ topic, partition, timestamp_ms: timestamp }) {
    const found = await admin.fetchTopicOffsetsByTimestamp(topic, timestamp)
    const offset = Number(found.find(one => one.partition === partition).offset)
    // It says "the end" where the broker says that there is none.
    return offset === (await watermarks(topic, partition)).high ? null : offset
  },

  async 'member.open' ({ member, group, topic, session_timeout_ms: sessionTimeout }) {
    const follower = new Follower({ groupId: group, sessionTimeout, rebalanceTimeout: 10000 })
    members.set(member, follower)
    await follower.open(topic)
  },
  'member.poll': ({ member, timeout_ms: timeoutMs }) => members.get(member).poll(timeoutMs),
  'member.assignment': ({ member }) => members.get(member).assigned[members.get(member).topic] ?? [],
  'member.commit': ({ member }) => members.get(member).commit(),
  async 'member.close' ({ member }) {
    await members.get(member).consumer.disconnect()
    members.delete(member)
  },

  async 'transactions.open' ({ producer: number, transactional_id: id, timeout_ms: timeout }) {
    const producer = transactional(id, timeout)
    await producer.connect()
    producers.set(number, { producer })
  },
  async 'transactions.begin' ({ producer: number }) {
    const opened = producers.get(number)
    opened.transaction = await opened.producer.transaction()
  },
  async 'transactions.send' ({ producer: number, topic, records }) {
    await producers.get(number).transaction.send({ topic, messages: records.map(toMessage) })
  },
  'transactions.commit': ({ producer: number }) => producers.get(number).transaction.commit(),
  'transactions.abort': ({ producer: number }) => producers.get(number).transaction.abort(),
  async 'transactions.close' ({ producer: number }) {
    await producers.get(number).producer.disconnect()
    producers.delete(number)
  },
  copy,

  async committed ({ group, topic, partition }) {
    const [{ partitions }] = await admin.fetchOffsets({ groupId: group, topics: [topic] })
    const found = Number(partitions.find(one => one.partition === partition).offset)
    return found < 0 ? null : found
  },

  async commit_metadata ({ group, topic, offset, metadata }) {
    const follower = await new Follower({ groupId: group }).open(topic)
    try {
      while (!follower.assigned[topic]) await new Promise(resolve => setTimeout(resolve, 20))
      await follower.consumer.commitOffsets([{ topic, partition: 0, offset: String(offset), metadata }])
      const [{ partitions }] = await admin.fetchOffsets({ groupId: group, topics: [topic] })
      return partitions.find(one => one.partition === 0).metadata
    } finally {
      await follower.consumer.disconnect()
    }
  },

  async cluster () {
    const { clusterId, controller, brokers } = await admin.describeCluster()
    return {
      cluster_id: clusterId,
      controller_id: controller,
      brokers: brokers.map(({ nodeId, host, port }) => [nodeId, `${host}:${port}`])
    }
  },

  async create_topic ({ name, partitions, configs, replication_factor: replicationFactor }) {
    const configEntries = Object.entries(configs).map(([key, value]) => ({ name: key, value }))
    const wanted = { topic: name, numPartitions: partitions, replicationFactor, configEntries }
    // It says "false" where the broker says that the topic exists.
    if (!await admin.createTopics({ topics: [wanted] })) throw new Refused(36, 'it exists')
  },
  topics: () => admin.listTopics(),
  async partitions ({ topic }) {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    return topics[0].partitions.length
  },
  delete_topic: ({ name }) => admin.deleteTopics({ topics: [name] }),
  add_partitions: async ({ topic, total }) => {
    await admin.createPartitions({ topicPartitions: [{ topic, count: total }] })
  },
  async config ({ topic }) {
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false, resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }]
    })
    return Object.fromEntries(resources[0].configEntries.map(one => [one.configName, [one.configValue, one.isDefault]]))
  },
  async set_config ({ topic, key, value }) {
    await admin.alterConfigs({
      validateOnly: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries: [{ name: key, value }] }]
    })
  },
  delete_records: ({ topic, before, partition }) => admin.deleteTopicRecords({
    topic, partitions: [{ partition, offset: String(before) }]
  }),

  groups: async () => (await admin.listGroups()).groups.map(({ groupId }) => groupId),
  async group ({ group }) {
    const { groups: [found] } = await admin.describeGroups([group])
    if (found.errorCode) throw new Refused(found.errorCode)
    return { state: found.state, members: found.members.length }
  },
  async delete_group ({ group }) {
    await admin.deleteGroups([group])
  }
})
