// Writes one record to a topic over SASL_SSL by KafkaJS and reads it again; prints what was read.
'use strict'

const fs = require('fs')
const asked = JSON.parse(process.argv[2])
const { Kafka, logLevel } = require(asked.modules)

const kafka = new Kafka({
  brokers: [asked.server],
  ssl: { ca: [fs.readFileSync(asked.authority)], servername: 'localhost' },
  sasl: { mechanism: asked.mechanism, username: 'alice', password: asked.password },
  logLevel: logLevel.NOTHING,
  retry: { retries: 3 },
})

async function main() {
  const producer = kafka.producer()
  await producer.connect()
  await producer.send({ topic: asked.topic, messages: [{ value: 'kafkajs' }] })
  await producer.disconnect()
  const consumer = kafka.consumer({ groupId: asked.topic })
  await consumer.connect()
  await consumer.subscribe({ topics: [asked.topic], fromBeginning: true })
  const value = await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, event => reject(event.payload.error))
    consumer.run({ eachMessage: async ({ message }) => resolve(message.value.toString()) })
  })
  await consumer.disconnect()
  console.log(value)
}

main().catch(error => {
  console.error(`${error.name}: ${error.message}`)
  process.exit(1)
})
