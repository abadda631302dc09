// Kafka's own reader and writer of metadata snapshots, for tests to compare with: one JSON request a line in, one JSON
// answer a line out. Started from its source with Kafka's jars on the class path; `tests/support/java_oracle.py` speaks
// with it.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Path;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RaftSnapshotWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.snapshot.FileRawSnapshotReader;
import org.apache.kafka.snapshot.FileRawSnapshotWriter;
import org.apache.kafka.snapshot.RecordsSnapshotReader;
import org.apache.kafka.snapshot.RecordsSnapshotWriter;

public class SnapshotOracle {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(JSON.writeValueAsString(copy(JSON.readTree(line))));
            System.out.flush();
        }
    }

    // Loads the snapshot in the directory "from", and writes the image into the directory "to".
    static JsonNode copy(JsonNode asked) throws Exception {
        OffsetAndEpoch id = new OffsetAndEpoch(asked.get("offset").asLong(), asked.get("epoch").asInt());
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        long timestamp;
        try (FileRawSnapshotReader file = FileRawSnapshotReader.open(Path.of(asked.get("from").asText()), id);
             RecordsSnapshotReader<ApiMessageAndVersion> reader = RecordsSnapshotReader.of(
                 file, MetadataRecordSerde.INSTANCE, BufferSupplier.create(), 8 << 20, true, new LogContext())) {
            while (reader.hasNext()) {
                for (ApiMessageAndVersion record : reader.next().records()) {
                    delta.replay(record.message());
                }
            }
            timestamp = reader.lastContainedLogTimestamp();
        }
        delta.finishSnapshot();
        MetadataImage image = delta.apply(new MetadataProvenance(id.offset() - 1, id.epoch(), timestamp, true));
        RecordsSnapshotWriter<ApiMessageAndVersion> writer = new RecordsSnapshotWriter.Builder()
            .setLastContainedLogTimestamp(timestamp)
            .setMaxBatchSizeBytes(8 << 20)
            .setRawSnapshotWriter(FileRawSnapshotWriter.create(Path.of(asked.get("to").asText()), id))
            .build(MetadataRecordSerde.INSTANCE);
        RaftSnapshotWriter images = new RaftSnapshotWriter(writer, 1024);
        image.write(images, new ImageWriterOptions.Builder(image.features().metadataVersionOrThrow())
            .setEligibleLeaderReplicasEnabled(image.features().isElrEnabled()).build());
        images.close(true);
        ObjectNode answer = JSON.createObjectNode();
        answer.put("timestamp", timestamp);
        answer.put("topics", image.topics().topicsById().size());
        answer.put("brokers", image.cluster().brokers().size());
        return answer;
    }
}
