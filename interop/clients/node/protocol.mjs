// The driver's side of the protocol of ../driven.py: questions in on stdin, answers out on stdout.

import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

export const bootstrap = process.argv[2]

/** How a secured listener is reached (`Login.for_driver`); undefined where it is not secured. */
export const login = process.argv[3] && JSON.parse(process.argv[3])

/** The settings of TLS in the words of Node.js. */
export const tls = login && {
  ca: [readFileSync(login.ca)],
  ...(login.certificate && { cert: readFileSync(login.certificate), key: readFileSync(login.certificate) })
}

/** The broker answered with an error code. */
export class Refused extends Error {
  constructor (code, text = '') {
    super(`${code} ${text}`)
    this.code = code
    this.text = text
  }
}

export const bytes = text => (text === null || text === undefined ? null : Buffer.from(text, 'base64'))
export const text = data => (data === null || data === undefined ? null : Buffer.from(data).toString('base64'))

const say = message => process.stdout.write(JSON.stringify(message) + '\n')

/**
 * Answer questions for a package until stdin ends. `refusal` makes a Refused of an error that holds the
 * broker's code.
 */
export function serve (packageName, { features, strategies, refusal }, ops) {
  process.on('unhandledRejection', error => console.error('unhandled', error))
  const about = new URL(`./node_modules/${packageName}/package.json`, import.meta.url)
  const { version } = JSON.parse(readFileSync(about))
  say({ version, features, strategies, ops: Object.keys(ops) })
  const questions = createInterface({ input: process.stdin })
  questions.on('close', () => process.exit(0))
  questions.on('line', async line => {
    const { id, op, ...question } = JSON.parse(line)
    try {
      say({ id, ok: (await ops[op](question)) ?? null })
    } catch (error) {
      const refused = error instanceof Refused ? error : refusal(error)
      say(refused ? { id, refused: refused.code, text: refused.text } : { id, failed: error.stack ?? String(error) })
    }
  })
}

/** Things that arrive one by one and are taken all at once. */
export class Inbox {
  items = []
  #wake = () => {}

  put (item) {
    this.items.push(item)
    this.#wake()
  }

  /** Everything there is; when there is nothing, what comes first within the time. */
  async take (timeoutMs) {
    if (this.items.length === 0) {
      await new Promise(resolve => {
        const timer = setTimeout(resolve, timeoutMs)
        this.#wake = () => { clearTimeout(timer); resolve() }
      })
      this.#wake = () => {}
    }
    return this.items.splice(0)
  }
}

/** The offset of each record of one produce, from the first offset of each partition (-1: not known). */
export function countedFrom (baseOffsets, records) {
  const next = new Map(baseOffsets)
  return records.map(({ partition }) => {
    const offset = next.get(partition) ?? -1
    if (offset >= 0) next.set(partition, offset + 1)
    return offset
  })
}
