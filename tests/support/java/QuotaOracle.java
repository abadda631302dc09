import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.TokenBucket;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Sanitizer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuota;
import org.apache.kafka.server.quota.PermissiveControllerMutationQuota;
import org.apache.kafka.server.quota.QuotaType;
import org.apache.kafka.server.quota.StrictControllerMutationQuota;

/**
 * Kafka's quotas. {"do": "limits", "quotas": [{"user": "ann", "client": "", "rate": 2.5} ...], "clients": [["ann", "c"]
 * ...]}, where no name is no part of the entity and "" is its default. Returned of each client: the rate, or null, and
 * the user and the client id that share it, "" for none.
 *
 * The quota of partition mutations: {"do": "mutations", "rate": 2.5, "samples": 11, "sampleMs": 1000,
 * "requests": [[now in ms, strict, partitions, partitions ...] ...]}. Returned of each request: whether each of the
 * partitions was accepted, and the throttle time in ms. All requests are of one client.
 */
public class QuotaOracle {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            JsonNode asked = json.readTree(line);
            System.out.println(json.writeValueAsString(asked.get("do").asText().equals("limits")
                ? Map.of("limits", limits(asked))
                : Map.of("requests", mutations(asked))));
        }
    }

    private static List<List<Object>> limits(JsonNode asked) throws Exception {
        List<List<Object>> limits = new ArrayList<>();
        try (Metrics metrics = new Metrics()) {
            ClientQuotaManager manager = new ClientQuotaManager(
                new ClientQuotaManagerConfig(11, 1), metrics, QuotaType.PRODUCE, Time.SYSTEM, "");
            for (JsonNode quota : asked.get("quotas")) {
                manager.updateQuota(
                    named(quota.get("user"), ClientQuotaManager.DEFAULT_USER_ENTITY,
                        name -> new ClientQuotaManager.UserEntity(Sanitizer.sanitize(name))),
                    named(quota.get("client"), ClientQuotaManager.DEFAULT_USER_CLIENT_ID,
                        ClientQuotaManager.ClientIdEntity::new),
                    Optional.of(Quota.upperBound(quota.get("rate").asDouble())));
            }
            for (JsonNode client : asked.get("clients")) {
                String user = client.get(0).asText();
                String clientId = client.get(1).asText();
                Session session =
                    new Session(new KafkaPrincipal("User", user), InetAddress.getLoopbackAddress());
                Map<String, String> shared = manager.getOrCreateQuotaSensors(session, clientId).metricTags();
                double bound = manager.quota(user, clientId).bound();
                limits.add(Arrays.asList(
                    bound == Long.MAX_VALUE ? null : bound, shared.get("user"), shared.get("client-id")));
            }
            manager.shutdown();
        }
        return limits;
    }

    private static Optional<ConfigEntity> named(
            JsonNode name, ConfigEntity byDefault, Function<String, ConfigEntity> entity) {
        if (name == null || name.isNull()) {
            return Optional.empty();
        }
        return Optional.of(name.asText().isEmpty() ? byDefault : entity.apply(name.asText()));
    }

    private static List<Map<String, Object>> mutations(JsonNode asked) {
        SetTime time = new SetTime();
        List<Map<String, Object>> results = new ArrayList<>();
        try (Metrics metrics = new Metrics(time)) {
            MetricConfig config = new MetricConfig()
                .timeWindow(asked.get("sampleMs").asLong(), TimeUnit.MILLISECONDS)
                .samples(asked.get("samples").asInt())
                .quota(Quota.upperBound(asked.get("rate").asDouble()));
            time.now = asked.get("requests").get(0).get(0).asLong();
            Sensor sensor = metrics.sensor("mutations", config);
            sensor.add(new MetricName("tokens", "mutations", "", Map.of()), new TokenBucket());
            for (JsonNode request : asked.get("requests")) {
                time.now = request.get(0).asLong();
                ControllerMutationQuota quota = request.get(1).asBoolean()
                    ? new StrictControllerMutationQuota(time, sensor)
                    : new PermissiveControllerMutationQuota(time, sensor);
                List<Boolean> accepted = new ArrayList<>();
                for (int at = 2; at < request.size(); at++) {
                    accepted.add(isAccepted(quota, request.get(at).asInt()));
                }
                results.add(Map.of("accepted", accepted, "wait", quota.throttleTime()));
            }
        }
        return results;
    }

    private static boolean isAccepted(ControllerMutationQuota quota, int partitions) {
        try {
            quota.record(partitions);
            return true;
        } catch (ThrottlingQuotaExceededException exceeded) {
            return false;
        }
    }

    private static final class SetTime implements Time {
        long now;

        @Override
        public long milliseconds() {
            return now;
        }

        @Override
        public long nanoseconds() {
            return now * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            now += ms;
        }

        @Override
        public void waitObject(Object waited, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }
}
