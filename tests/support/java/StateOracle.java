import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.coordinator.group.classic.ClassicGroupState;
import org.apache.kafka.coordinator.transaction.TransactionState;

/**
 * The states of Kafka's coordinators, whatever is asked: by name the states that may come before, and of a transactional
 * id the number in the log and whether it may expire.
 */
public class StateOracle {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            Map<String, Object> transactions = new LinkedHashMap<>();
            for (TransactionState state : TransactionState.values()) {
                List<String> previous =
                    state.validPreviousStates().stream().map(TransactionState::stateName).sorted().toList();
                transactions.put(state.stateName(), Map.of(
                    "number", state.id(), "previous", previous, "expires", state.isExpirationAllowed()));
            }
            Map<String, List<String>> groups = new LinkedHashMap<>();
            for (ClassicGroupState state : ClassicGroupState.values()) {
                groups.put(state.toString(),
                    state.validPreviousStates().stream().map(ClassicGroupState::toString).sorted().toList());
            }
            System.out.println(json.writeValueAsString(Map.of("transactions", transactions, "groups", groups)));
        }
    }
}
