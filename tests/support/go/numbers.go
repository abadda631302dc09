// Numbers sends or reads numbered records of partition 0 of a topic by franz-go.
//
//	numbers produce SERVERS TOPIC   sends each line of standard input, prints "offset number" for what is acknowledged
//	numbers consume SERVERS TOPIC   prints "offset number" for what it reads, until standard input ends
//
// Settings are the library's defaults: an idempotent producer with acks=all.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	if len(os.Args) != 4 {
		fail(fmt.Errorf("usage: numbers produce|consume SERVERS TOPIC"))
	}
	servers, topic := strings.Split(os.Args[2], ","), os.Args[3]
	if os.Args[1] == "produce" {
		produce(servers, topic)
	} else {
		consume(servers, topic)
	}
}

func produce(servers []string, topic string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(servers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	fail(err)
	var printing sync.Mutex
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		record := &kgo.Record{Topic: topic, Partition: 0, Value: []byte(lines.Text())}
		client.Produce(context.Background(), record, func(sent *kgo.Record, err error) {
			fail(err)
			printing.Lock()
			defer printing.Unlock()
			fmt.Printf("%d %s\n", sent.Offset, sent.Value)
		})
	}
	fail(lines.Err())
	fail(client.Flush(context.Background()))
	client.Close()
}

func consume(servers []string, topic string) {
	from := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}
	client, err := kgo.NewClient(kgo.SeedBrokers(servers...), kgo.ConsumePartitions(from))
	fail(err)
	polling, end := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		end()
	}()
	out := bufio.NewWriter(os.Stdout)
	for polling.Err() == nil {
		fetches := client.PollFetches(polling)
		if polling.Err() == nil {
			fail(fetches.Err())
		}
		fetches.EachRecord(func(read *kgo.Record) {
			fmt.Fprintf(out, "%d %s\n", read.Offset, read.Value)
		})
		fail(out.Flush())
	}
	client.Close()
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
