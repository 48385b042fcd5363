// Sends to, or receives from, an address of a mesh with go-amqp.
//
//	go run . send|receive [URL [ADDRESS [COUNT]]]
package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/go-amqp"
)

const timeout = 10 * time.Second

func send(ctx context.Context, session *amqp.Session, address string, count int) error {
	sender, err := session.NewSender(ctx, address, nil)
	if err != nil {
		return err
	}
	receipts := make([]amqp.SendReceipt, count)
	for i := range receipts {
		message := amqp.NewMessage(fmt.Appendf(nil, "message %d", i+1))
		message.Header = &amqp.MessageHeader{Durable: true, Priority: 4}
		if receipts[i], err = sender.SendWithReceipt(ctx, message, nil); err != nil {
			return fmt.Errorf("message %d of %d: %w", i+1, count, err)
		}
	}
	for i, receipt := range receipts {
		state, err := receipt.Wait(ctx)
		if err != nil {
			return fmt.Errorf("message %d of %d: %w", i+1, count, err)
		}
		// Sender.Send would take released and modified for a success.
		if _, isAccepted := state.(*amqp.StateAccepted); !isAccepted {
			outcome := strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", state), "*encoding.State"))
			return fmt.Errorf("message %d of %d was not accepted but %s", i+1, count, outcome)
		}
	}
	fmt.Printf("sent %d, all accepted\n", count)
	return nil
}

func receive(ctx context.Context, session *amqp.Session, address string, count int) error {
	// Credit by hand, for the wanted messages and no more: other messages are for other consumers.
	receiver, err := session.NewReceiver(ctx, address, &amqp.ReceiverOptions{Credit: -1})
	if err != nil {
		return err
	}
	if err := receiver.IssueCredit(uint32(count)); err != nil {
		return err
	}
	for number := 1; number <= count; number++ {
		message, err := receiver.Receive(ctx, nil)
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("message %d of %d did not come within %v", number, count, timeout)
		} else if err != nil {
			return err
		}
		if message.Value != nil {
			fmt.Println(message.Value)
		} else {
			fmt.Printf("%s\n", message.GetData())
		}
		if err := receiver.AcceptMessage(ctx, message); err != nil {
			return err
		}
	}
	fmt.Printf("received %d\n", count)
	return nil
}

func run(role func(context.Context, *amqp.Session, string, int) error, server, address string, count int) error {
	where, err := url.Parse(server)
	if err != nil {
		return err
	}
	options := &amqp.ConnOptions{}
	if where.User == nil {
		options.SASLType = amqp.SASLTypeAnonymous()
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	connection, err := amqp.Dial(ctx, server, options)
	if err != nil {
		return err
	}
	defer connection.Close()
	session, err := connection.NewSession(ctx, nil)
	if err != nil {
		return err
	}
	return role(ctx, session, address, count)
}

func main() {
	roles := map[string]func(context.Context, *amqp.Session, string, int) error{"send": send, "receive": receive}
	arguments := []string{"", "amqp://127.0.0.1:5672", "orders", "10"}
	given := copy(arguments, os.Args[1:])
	role, isRole := roles[arguments[0]]
	count, err := strconv.Atoi(arguments[3])
	if !isRole || err != nil || given < len(os.Args)-1 {
		fmt.Fprintln(os.Stderr, "usage: go run . send|receive [URL [ADDRESS [COUNT]]]")
		os.Exit(2)
	}
	if err := run(role, arguments[1], arguments[2], count); err != nil {
		var refusal *amqp.Error
		if errors.As(err, &refusal) {
			err = fmt.Errorf("%s: %s", refusal.Condition, refusal.Description)
		}
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
