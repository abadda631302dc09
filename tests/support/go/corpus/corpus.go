// Corpus sends or reads back records of any bytes by franz-go, each as a frame on standard input or output.
//
//	corpus produce SERVERS TOPIC CODEC   sends each frame of standard input; ends when all are acknowledged
//	corpus consume SERVERS TOPIC COUNT   writes the first COUNT records of all partitions as frames
//	corpus group SERVERS TOPIC COUNT ID  the same as a member of a group, which commits what it has written
//
// A frame is the partition, the offset (0 in what is sent), key, value, and a count of headers, each a name and a value.
// Numbers are 64-bit integers, big-endian; bytes have their length before them, -1 for none. Other settings are the
// library's defaults: an idempotent producer with acks=all.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func main() {
	words := os.Args[1:]
	if len(words) < 4 || (words[0] == "group") != (len(words) == 5) {
		fail(errors.New("usage: corpus produce SERVERS TOPIC CODEC | consume SERVERS TOPIC COUNT | group SERVERS TOPIC COUNT ID"))
	}
	servers, topic := kgo.SeedBrokers(strings.Split(words[1], ",")...), words[2]
	switch words[0] {
	case "produce":
		produce(servers, topic, words[3])
	case "consume":
		consume(count(words[3]), false, servers, kgo.ConsumeTopics(topic), atStart())
	case "group":
		group := []kgo.Opt{kgo.ConsumerGroup(words[4]), kgo.DisableAutoCommit()}
		consume(count(words[3]), true, append(group, servers, kgo.ConsumeTopics(topic), atStart())...)
	default:
		fail(fmt.Errorf("no such command: %s", words[0]))
	}
}

func atStart() kgo.Opt {
	return kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())
}

func count(word string) int {
	wanted, err := strconv.Atoi(word)
	fail(err)
	return wanted
}

func produce(servers kgo.Opt, topic string, codec string) {
	chosen, known := codecs[codec]
	if !known {
		fail(fmt.Errorf("no such codec: %s", codec))
	}
	client, err := kgo.NewClient(
		servers,
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(chosen),
	)
	fail(err)
	in := bufio.NewReader(os.Stdin)
	for {
		record, err := read(in)
		if errors.Is(err, io.EOF) {
			break
		}
		fail(err)
		record.Topic = topic
		client.Produce(context.Background(), record, func(_ *kgo.Record, err error) { fail(err) })
	}
	fail(client.Flush(context.Background()))
	client.Close()
}

func consume(wanted int, commits bool, options ...kgo.Opt) {
	client, err := kgo.NewClient(options...)
	fail(err)
	out := bufio.NewWriter(os.Stdout)
	for wanted > 0 {
		fetches := client.PollRecords(context.Background(), wanted)
		fail(fetches.Err())
		fetches.EachRecord(func(one *kgo.Record) {
			write(out, one)
			wanted--
		})
		fail(out.Flush())
		if commits {
			fail(client.CommitUncommittedOffsets(context.Background()))
		}
	}
	client.Close()
}

func read(in io.Reader) (*kgo.Record, error) {
	partition, err := readNumber(in)
	if err != nil {
		return nil, err
	}
	_, err = readNumber(in)
	fail(err)
	record := &kgo.Record{Partition: int32(partition), Key: readBytes(in), Value: readBytes(in)}
	headers, err := readNumber(in)
	fail(err)
	for ; headers > 0; headers-- {
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: string(readBytes(in)), Value: readBytes(in)})
	}
	return record, nil
}

func readNumber(in io.Reader) (int64, error) {
	var number int64
	err := binary.Read(in, binary.BigEndian, &number)
	return number, err
}

func readBytes(in io.Reader) []byte {
	length, err := readNumber(in)
	fail(err)
	if length < 0 {
		return nil
	}
	bytes := make([]byte, length)
	_, err = io.ReadFull(in, bytes)
	fail(err)
	return bytes
}

func write(out io.Writer, record *kgo.Record) {
	writeNumber(out, int64(record.Partition))
	writeNumber(out, record.Offset)
	writeBytes(out, record.Key)
	writeBytes(out, record.Value)
	writeNumber(out, int64(len(record.Headers)))
	for _, header := range record.Headers {
		writeBytes(out, []byte(header.Key))
		writeBytes(out, header.Value)
	}
}

func writeNumber(out io.Writer, number int64) {
	fail(binary.Write(out, binary.BigEndian, number))
}

func writeBytes(out io.Writer, bytes []byte) {
	if bytes == nil {
		writeNumber(out, -1)
		return
	}
	writeNumber(out, int64(len(bytes)))
	_, err := out.Write(bytes)
	fail(err)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
