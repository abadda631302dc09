import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.internals.StreamsGroupHeartbeatRequestManager;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestDataJsonConverter;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.internals.InternalTopologyBuilder;
import org.apache.kafka.streams.processor.internals.ProcessorMetadata;
import org.apache.kafka.streams.processor.internals.StreamThread;
import org.apache.kafka.streams.processor.internals.TopicPartitionMetadata;

/** What Kafka Streams keeps to itself, but sends to brokers. */
class Internals {
    /** The topology in the heartbeat with which a member joins a streams group. */
    static JsonNode groupTopology(Topology topology, Properties properties) {
        try {
            properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "localhost:9092");
            StreamsConfig config = new StreamsConfig(properties);
            Field field = Topology.class.getDeclaredField("internalTopologyBuilder");
            field.setAccessible(true);
            InternalTopologyBuilder builder = (InternalTopologyBuilder) field.get(topology);
            builder.rewriteTopology(config);
            builder.buildTopology();
            Object subtopologies = method(StreamThread.class, "initBrokerTopology").invoke(null, config, builder);
            Class<?> state = Arrays.stream(StreamsGroupHeartbeatRequestManager.class.getDeclaredClasses())
                .filter(inner -> inner.getSimpleName().equals("HeartbeatState")).findFirst().orElseThrow();
            Method convert = Arrays.stream(state.getDeclaredMethods())
                .filter(found -> found.getName().equals("fromStreamsToHeartbeatRequest")
                    && found.getParameterTypes()[0] == Map.class)
                .findFirst().orElseThrow();
            convert.setAccessible(true);
            StreamsGroupHeartbeatRequestData.Topology sent = new StreamsGroupHeartbeatRequestData.Topology();
            sent.setSubtopologies((java.util.List) convert.invoke(null, subtopologies));
            return StreamsGroupHeartbeatRequestDataJsonConverter.TopologyJsonConverter.write(sent, (short) 0);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    static Method method(Class<?> owner, String name) {
        Method found = Arrays.stream(owner.getDeclaredMethods())
            .filter(method -> method.getName().equals(name)).findFirst().orElseThrow();
        found.setAccessible(true);
        return found;
    }

    /** The metadata of a committed offset. */
    static String metadata(long time, JsonNode numbers) {
        Map<String, Long> found = new HashMap<>();
        numbers.fields().forEachRemaining(entry -> found.put(entry.getKey(), entry.getValue().asLong()));
        return new TopicPartitionMetadata(time, new ProcessorMetadata(found)).encode();
    }
}
