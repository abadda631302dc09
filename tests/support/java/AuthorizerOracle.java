// Kafka's StandardAuthorizer, for tests to compare with: one JSON request a line in, one JSON answer a line out. A request
// has a set of entries and the questions about it. `tests/support/java_oracle.py` speaks with it.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

public class AuthorizerOracle {
    static final ObjectMapper JSON = new ObjectMapper();

    record Context(KafkaPrincipal principal, InetAddress clientAddress) implements AuthorizableRequestContext {
        public String listenerName() { return "PLAINTEXT"; }
        public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
        public int requestType() { return 1; }
        public int requestVersion() { return 4; }
        public String clientId() { return "test"; }
        public int correlationId() { return 0; }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
            System.out.flush();
        }
    }

    static JsonNode answer(JsonNode asked) throws Exception {
        StandardAuthorizer authorizer = new StandardAuthorizer();
        Map<String, Object> configs = new HashMap<>();
        configs.put("super.users", asked.get("superUsers").asText());
        configs.put("allow.everyone.if.no.acl.found", asked.get("ifNone").asBoolean() ? "true" : "false");
        authorizer.configure(configs);
        Metrics metrics = new Metrics();
        authorizer.withPluginMetrics(new PluginMetricsImpl(metrics, Map.of()));
        Map<Uuid, StandardAcl> entries = new HashMap<>();
        for (JsonNode entry : asked.get("entries")) {
            entries.put(Uuid.randomUuid(), new StandardAcl(
                ResourceType.fromCode((byte) entry.get(0).asInt()), entry.get(1).asText(),
                PatternType.fromCode((byte) entry.get(2).asInt()), entry.get(3).asText(), entry.get(4).asText(),
                AclOperation.fromCode((byte) entry.get(5).asInt()),
                AclPermissionType.fromCode((byte) entry.get(6).asInt())));
        }
        authorizer.loadSnapshot(entries);
        authorizer.completeInitialLoad();
        ArrayNode answers = JSON.createArrayNode();
        for (JsonNode question : asked.get("questions")) {
            String[] principal = question.get(0).asText().split(":", 2);
            Context context = new Context(
                new KafkaPrincipal(principal[0], principal[1]), InetAddress.getByName(question.get(1).asText()));
            AclOperation operation = AclOperation.fromCode((byte) question.get(2).asInt());
            ResourceType type = ResourceType.fromCode((byte) question.get(3).asInt());
            AuthorizationResult result;
            if (question.get(4).isNull()) {
                result = authorizer.authorizeByResourceType(context, operation, type);
            } else {
                ResourcePattern pattern = new ResourcePattern(type, question.get(4).asText(), PatternType.LITERAL);
                result = authorizer.authorize(
                    context, List.of(new Action(operation, pattern, 1, true, true))).get(0);
            }
            answers.add(result == AuthorizationResult.ALLOWED);
        }
        authorizer.close();
        metrics.close();
        return answers;
    }
}
