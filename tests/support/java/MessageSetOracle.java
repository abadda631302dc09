// Message sets as Kafka's own classes write and read them, for tests to compare with: one JSON request a line in, one JSON
// answer a line out. Started from its source with Kafka's jars on the class path; `tests/support/java_oracle.py` speaks with it.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.CloseableIterator;

public class MessageSetOracle {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream answers = System.out;
        System.setOut(System.err); // Whatever is logged is no answer.
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode asked = JSON.readTree(line);
            answers.println(JSON.writeValueAsString(asked.get("do").asText().equals("write") ? write(asked) : read(asked)));
            answers.flush();
        }
    }

    // The "bytes" of "records" (offset, timestamp, key, value) in a set of format "magic", wrapped in a "codec".
    static JsonNode write(JsonNode asked) throws Exception {
        byte magic = (byte) asked.get("magic").asInt();
        TimestampType type = magic == 0 ? TimestampType.NO_TIMESTAMP_TYPE : TimestampType.CREATE_TIME;
        Compression codec = Compression.of(CompressionType.forName(asked.get("codec").asText())).build();
        JsonNode records = asked.get("records");
        long first = records.get(0).get(0).asLong();
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1 << 20), magic, codec, type, first);
        for (JsonNode record : records) {
            long offset = record.get(0).asLong(), timestamp = magic == 0 ? -1 : record.get(1).asLong();
            builder.appendWithOffset(offset, timestamp, record.get(2).binaryValue(), record.get(3).binaryValue());
        }
        ObjectNode answer = JSON.createObjectNode();
        return answer.put("bytes", bytes(builder.build().buffer()));
    }

    // The batches in "bytes", each with its "magic", "codec" and "records"; one with a wrong checksum ends the program.
    static JsonNode read(JsonNode asked) throws Exception {
        ArrayNode batches = JSON.createArrayNode();
        MemoryRecords set = MemoryRecords.readableRecords(ByteBuffer.wrap(asked.get("bytes").binaryValue()));
        for (MutableRecordBatch batch : set.batches()) {
            batch.ensureValid();
            ObjectNode shown = batches.addObject().put("magic", batch.magic()).put("codec", batch.compressionType().name);
            ArrayNode records = shown.putArray("records");
            try (CloseableIterator<Record> each = batch.streamingIterator(BufferSupplier.NO_CACHING)) {
                while (each.hasNext()) {
                    Record record = each.next();
                    record.ensureValid();
                    ArrayNode fields = records.addArray().add(record.offset()).add(record.timestamp());
                    fields.add(record.hasKey() ? bytes(record.key()) : null);
                    fields.add(record.hasValue() ? bytes(record.value()) : null);
                }
            }
        }
        return JSON.createObjectNode().set("batches", batches);
    }

    static byte[] bytes(ByteBuffer buffer) {
        byte[] copy = new byte[buffer.remaining()];
        buffer.duplicate().get(copy);
        return copy;
    }
}
