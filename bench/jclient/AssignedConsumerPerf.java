import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Kafka's Java consumer at full speed on assigned partitions: what kafka-consumer-perf-test does, without a group.
 *
 * <p>AssignedConsumerPerf BOOTSTRAP TOPIC RECORDS [key=value ...] reads from the beginning with that tool's settings (a
 * receive buffer of 2 MiB, 1 MiB a partition and request, no CRC check) and prints one line of JSON. The clock runs from the
 * assignment to the last record.
 */
public final class AssignedConsumerPerf {
    private static final Duration PATIENCE = Duration.ofSeconds(20);

    private AssignedConsumerPerf() {}

    public static void main(String[] words) throws Exception {
        if (words.length < 3) {
            System.err.println("usage: AssignedConsumerPerf BOOTSTRAP TOPIC RECORDS [key=value ...]");
            System.exit(2);
        }
        long wanted = Long.parseLong(words[2]);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings(words))) {
            List<TopicPartition> partitions = consumer.partitionsFor(words[1]).stream()
                .map(partition -> new TopicPartition(partition.topic(), partition.partition()))
                .collect(Collectors.toList());
            read(consumer, partitions, wanted);
        }
    }

    private static Properties settings(String[] words) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", words[0]);
        settings.put("client.id", "perf-consumer-client");
        settings.put("receive.buffer.bytes", "2097152");
        settings.put("max.partition.fetch.bytes", "1048576");
        settings.put("auto.offset.reset", "earliest");
        settings.put("check.crcs", "false");
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        for (int i = 3; i < words.length; i++) {
            int equals = words[i].indexOf('=');
            settings.put(words[i].substring(0, equals), words[i].substring(equals + 1));
        }
        return settings;
    }

    private static void read(KafkaConsumer<byte[], byte[]> consumer, List<TopicPartition> partitions, long wanted) {
        long records = 0;
        long bytes = 0;
        long begun = System.nanoTime();
        long last = begun;
        long first = 0;
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        while (records < wanted) {
            ConsumerRecords<byte[], byte[]> polled = consumer.poll(Duration.ofMillis(100));
            if (!polled.isEmpty()) {
                last = System.nanoTime();
                first = first == 0 ? last : first;
            } else if (System.nanoTime() - last > PATIENCE.toNanos()) {
                System.err.printf("only %d of %d records came%n", records, wanted);
                System.exit(1);
            }
            for (ConsumerRecord<byte[], byte[]> record : polled) {
                records++;
                bytes += (record.key() == null ? 0 : record.key().length) + (record.value() == null ? 0 : record.value().length);
            }
        }
        double seconds = (System.nanoTime() - begun) / 1e9;
        System.out.printf(
            java.util.Locale.ROOT,
            "{\"load\": \"java-consume\", \"records\": %d, \"bytes\": %d, \"seconds\": %.6f, \"first_record_s\": %.6f}%n",
            records, bytes, seconds, (first - begun) / 1e9);
    }
}
