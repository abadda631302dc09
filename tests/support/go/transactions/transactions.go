// Transactions sends records of partition 0 of a topic in transactions by franz-go, and fences its own producer.
//
//	transactions SERVERS TOPIC ID   commits a, aborts b, commits c, leaves one open; a newer producer of the id commits d
//
// It prints what the fenced producer's commit fails with. Settings are the library's defaults.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

var background = context.Background()

func main() {
	if len(os.Args) != 4 {
		fail(fmt.Errorf("usage: transactions SERVERS TOPIC ID"))
	}
	servers, topic, id := strings.Split(os.Args[1], ","), os.Args[2], os.Args[3]
	older := client(servers, id)
	for _, value := range []string{"a", "b", "c"} {
		begin(older, topic, value)
		fail(older.EndTransaction(background, value != "b"))
	}
	begin(older, topic, "open")
	newer := client(servers, id)
	begin(newer, topic, "d")
	fail(newer.EndTransaction(background, kgo.TryCommit))
	newer.Close()
	if err := older.EndTransaction(background, kgo.TryCommit); err != nil {
		fmt.Println(err)
	} else {
		fail(fmt.Errorf("the fenced producer has committed"))
	}
	older.Close()
}

func client(servers []string, id string) *kgo.Client {
	made, err := kgo.NewClient(
		kgo.SeedBrokers(servers...), kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	fail(err)
	return made
}

func begin(producer *kgo.Client, topic string, value string) {
	err := producer.BeginTransaction()
	for ; errors.Is(err, kerr.ConcurrentTransactions); err = producer.BeginTransaction() {
		time.Sleep(10 * time.Millisecond) // The open transaction of an older instance is being aborted; the library does not wait.
	}
	fail(err)
	record := &kgo.Record{Topic: topic, Partition: 0, Value: []byte(value)}
	fail(producer.ProduceSync(background, record).FirstErr())
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
