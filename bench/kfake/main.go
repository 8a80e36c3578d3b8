// Command kfake runs franz-go's single-node test broker with its data on disk: the light peer of the bench.
package main

import (
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	port := flag.Int("port", 9092, "port to listen on, on localhost")
	dataDir := flag.String("data-dir", "", "folder that keeps the data")
	partitions := flag.Int("partitions", 4, "partitions of an automatically created topic")
	flag.Parse()

	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.Ports(*port),
		kfake.DataDir(*dataDir),
		kfake.AllowAutoTopicCreation(),
		kfake.DefaultNumPartitions(*partitions),
	)
	if err != nil {
		log.Fatal(err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	<-stop
	cluster.Close()
}
