// go-amqp as a test client. Arguments and output are those that client.py describes, and two of its own:
//
//	settles   unsettled | settled | mixed and, behind a comma, first | second: modes that the link asks for
//	drain     true: a receiver drains its credit, all of which is used up, before it ends
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/go-amqp"
)

const patience = 15 * time.Second

var options = map[string]string{}

func say(format string, values ...any) {
	fmt.Printf(format+"\n", values...)
}

func check(err error) {
	if err != nil {
		say("failed: %v", err)
		os.Exit(1)
	}
}

func modes() (*amqp.SenderSettleMode, *amqp.ReceiverSettleMode) {
	sending, receiving, isGiven := strings.Cut(options["settles"], ",")
	if !isGiven {
		return nil, nil
	}
	senderModes := map[string]amqp.SenderSettleMode{
		"unsettled": amqp.SenderSettleModeUnsettled,
		"settled":   amqp.SenderSettleModeSettled,
		"mixed":     amqp.SenderSettleModeMixed,
	}
	receiverModes := map[string]amqp.ReceiverSettleMode{
		"first":  amqp.ReceiverSettleModeFirst,
		"second": amqp.ReceiverSettleModeSecond,
	}
	return senderModes[sending].Ptr(), receiverModes[receiving].Ptr()
}

func within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

func send(session *amqp.Session, count int) {
	sending, receiving := modes()
	ctx, cancel := within()
	defer cancel()
	sender, err := session.NewSender(ctx, options["address"], &amqp.SenderOptions{
		SettlementMode:              sending,
		RequestedReceiverSettleMode: receiving,
	})
	check(err)
	say("attached")
	for sequence := 1; sequence <= count; sequence++ {
		message := &amqp.Message{
			Header: &amqp.MessageHeader{Durable: true, Priority: 4},
			Value:  map[string]any{"sequence": int64(sequence)},
		}
		ctx, cancel := within()
		check(sender.Send(ctx, message, nil))
		cancel()
		say("sequence=%d", sequence)
	}
	ctx, cancel = within()
	defer cancel()
	check(sender.Close(ctx))
}

func receive(session *amqp.Session, count int) {
	sending, receiving := modes()
	ctx, cancel := within()
	defer cancel()
	receiver, err := session.NewReceiver(ctx, options["address"], &amqp.ReceiverOptions{
		Credit:                    -1,
		RequestedSenderSettleMode: sending,
		SettlementMode:            receiving,
	})
	check(err)
	check(receiver.IssueCredit(uint32(count)))
	say("attached")
	isSettled := sending != nil && *sending == amqp.SenderSettleModeSettled
	for taken := 0; taken < count; taken++ {
		message, err := receiver.Receive(context.Background(), nil)
		check(err)
		value, _ := message.Value.(map[string]any)
		say("sequence=%v", value["sequence"])
		if !isSettled {
			ctx, cancel := within()
			check(receiver.AcceptMessage(ctx, message))
			cancel()
		}
	}
	if options["drain"] != "" {
		ctx, cancel := within()
		defer cancel()
		check(receiver.DrainCredit(ctx, nil))
		say("drained")
	}
	ctx, cancel = within()
	defer cancel()
	check(receiver.Close(ctx))
}

func main() {
	for _, argument := range os.Args[1:] {
		key, value, _ := strings.Cut(argument, "=")
		options[key] = value
	}
	count, err := strconv.Atoi(options["count"])
	check(err)
	ctx, cancel := within()
	defer cancel()
	how := &amqp.ConnOptions{ContainerID: options["container_id"]}
	if !strings.Contains(options["urls"], "@") {
		how.SASLType = amqp.SASLTypeAnonymous()
	}
	connection, err := amqp.Dial(ctx, options["urls"], how)
	check(err)
	session, err := connection.NewSession(ctx, nil)
	check(err)
	switch options["mode"] {
	case "send":
		send(session, count)
	case "receive":
		receive(session, count)
	default:
		check(errors.New("this client does not " + options["mode"]))
	}
	check(connection.Close())
	say("done")
}
