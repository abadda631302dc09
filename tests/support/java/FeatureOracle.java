import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;

/** Kafka's tables of features, whatever is asked: the levels of metadata.version, and the range of each other feature. */
public class FeatureOracle {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            System.out.println(json.writeValueAsString(Map.of("versions", versions(), "features", features())));
        }
    }

    private static List<Map<String, Object>> versions() {
        List<Map<String, Object>> versions = new ArrayList<>();
        for (MetadataVersion version : MetadataVersion.values()) {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("level", version.featureLevel());
            one.put("name", version.version());
            one.put("isProduction", version.isProduction());
            one.put("PartitionRecord", version.partitionRecordVersion());
            one.put("PartitionChangeRecord", version.partitionChangeRecordVersion());
            one.put("RegisterBrokerRecord", version.registerBrokerRecordVersion());
            if (version.isControllerRegistrationSupported()) {
                one.put("RegisterControllerRecord", version.registerControllerRecordVersion());
            }
            Map<String, Object> levels = new LinkedHashMap<>();
            for (Feature feature : Feature.PRODUCTION_FEATURES) {
                levels.put(feature.featureName(), feature.defaultLevel(version));
            }
            one.put("defaults", levels);
            versions.add(one);
        }
        return versions;
    }

    private static Map<String, Object> features() {
        Map<String, Object> features = new LinkedHashMap<>();
        for (Feature feature : Feature.PRODUCTION_FEATURES) {
            features.put(feature.featureName(), List.of(feature.minimumProduction(), feature.latestProduction()));
        }
        return features;
    }
}
