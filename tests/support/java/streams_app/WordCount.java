// A Kafka Streams application that counts words, as a member of a streams group (KIP-1071).
//
// Arguments: pairs of a name and a value; "input" and "output" are topics, all others are settings of Kafka Streams.
// Prints each state of the application in a line. Standard input has the commands "close", "endpoints" and "key WORD".
// The program ends at the end of its input.

import static java.util.stream.Collectors.joining;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyQueryMetadata;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsMetadata;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.HostInfo;

public class WordCount {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("group.protocol", "streams");
        settings.put("statestore.cache.max.bytes", "0");
        settings.put("commit.interval.ms", "200");
        for (int at = 0; at < arguments.length; at += 2) {
            settings.put(arguments[at], arguments[at + 1]);
        }
        String input = (String) settings.remove("input");
        String output = (String) settings.remove("output");
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(input, Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.as("counts"))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(output, Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setStateListener((now, before) -> say("STATE " + now));
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (line.equals("close")) {
                streams.close(Duration.ofSeconds(30));
                say("CLOSED");
            } else if (line.equals("endpoints")) {
                for (StreamsMetadata client : streams.metadataForAllStreamsClients()) {
                    say("ENDPOINT " + client.host() + ":" + client.port() + " " + client.topicPartitions().size());
                }
                say("END");
            } else if (line.startsWith("key ")) {
                String word = line.substring(4);
                KeyQueryMetadata found = streams.queryMetadataForKey("counts", word, new StringSerializer());
                String standby = found.standbyHosts().stream().map(WordCount::address).sorted().collect(joining(","));
                say("KEY " + word + " " + found.partition() + " " + address(found.activeHost()) + " [" + standby + "]");
            }
        }
        streams.close(Duration.ofSeconds(5));
    }

    static String address(HostInfo host) {
        return host.host() + ":" + host.port();
    }

    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
