// Copier copies a topic in transactions by franz-go, values in upper case, as a member of a group, until it is ended.
//
//	copier SERVERS GROUP INPUT OUTPUT ID
//
// What can be aborted is aborted and read again; what cannot ends the program, and the next one takes over its id.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const atOnce = 50

var background = context.Background()

func main() {
	if len(os.Args) != 6 {
		fail(fmt.Errorf("usage: copier SERVERS GROUP INPUT OUTPUT ID"))
	}
	servers, group, input, output, id := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(strings.Split(servers, ",")...),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(input),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.SessionTimeout(6*time.Second),
		kgo.TransactionalID(id),
		kgo.TransactionTimeout(10*time.Second),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	fail(err)
	for {
		fetches := session.PollRecords(background, atOnce)
		if fetches.NumRecords() > 0 {
			copyAll(session, fetches, output)
		}
	}
}

func copyAll(session *kgo.GroupTransactSession, fetches kgo.Fetches, output string) {
	fail(session.Begin())
	var made []*kgo.Record
	fetches.EachRecord(func(read *kgo.Record) {
		made = append(made, &kgo.Record{
			Topic: output, Partition: read.Partition, Key: read.Key, Value: bytes.ToUpper(read.Value)})
	})
	end := kgo.TryCommit
	if session.ProduceSync(background, made...).FirstErr() != nil {
		end = kgo.TryAbort
	}
	_, err := session.End(background, end)
	fail(err)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
